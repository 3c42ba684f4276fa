"""Scans of watchlists: what is looked up, and what becomes of the answers."""
