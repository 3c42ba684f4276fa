"""Search over published records: all indexes at once, or one of them."""
