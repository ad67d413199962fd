"""Tensor cores by `mma.sync`: which kernels they can compute, the numbers of a schedule, the code."""
