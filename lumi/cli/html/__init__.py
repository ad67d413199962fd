"""Writes what there is to see of a plan as one page of HTML: sections, pictures, tables."""
