"""Lumi: an embedded language and a search-based compiler for deep learning."""
