"""Reads kernel graphs, writes a plan: aliases and one arena."""
