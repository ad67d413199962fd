"""Reads source text, writes forms, and prints them back; the only door to lark."""
