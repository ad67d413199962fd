"""Reads forms, writes HLIR: values, scopes, special forms, modules."""
