"""Kernels that can run: tile programs over named axes, and the graph of them."""
