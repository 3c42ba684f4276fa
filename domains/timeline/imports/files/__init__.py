"""Read the points of a file: its format, its errors, and what it is packed in."""
