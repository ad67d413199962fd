"""Runs a plan on a device; knows nothing of the compiler."""
