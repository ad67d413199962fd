"""What is the same in C and CUDA: scopes, tile loops, items of a cell, roots of a nest, dtypes."""
