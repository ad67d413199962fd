"""The tensor graph: positional tensors, fifteen primitives, one view, and ten ops that these do not give exactly."""
