"""Kernels in C, by the system compiler, and in numpy."""
