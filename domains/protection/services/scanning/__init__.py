"""Scans of watchlists: the look-ups, and the storage of their results."""
