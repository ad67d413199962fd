"""What runs: buffers, launches, dims and bindings, in one file."""
