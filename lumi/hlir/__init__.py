"""The tensor graph: positional tensors, fifteen primitives, one view, and ten ops for exactness."""
