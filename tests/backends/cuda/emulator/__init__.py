"""Runs CUDA kernels on a CPU, block by block, so that they are tested where there is no GPU."""
