"""Reads HLIR, writes regions of field terms: views become axes, equal regions are shared."""
