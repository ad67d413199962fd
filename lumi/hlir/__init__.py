"""The tensor graph: positional tensors, fifteen primitives and one movement op."""
