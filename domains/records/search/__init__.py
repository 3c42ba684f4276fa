"""Search in published records, with one index or with all indexes combined."""
