"""Reads an e-graph, measures, writes the fastest kernel graph and why it won."""
