"""Code that all formats share: unpacking, streaming, conversion of values, and counts."""
