"""Tensor cores by `wgmma`: groups of four warps, fed by one that copies (sm_90a)."""
