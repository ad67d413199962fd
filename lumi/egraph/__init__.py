"""Reads regions, writes saturated e-graphs; the only door to egglog."""
