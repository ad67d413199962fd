"""Kernels in CUDA, by NVRTC, on NVIDIA GPUs."""
