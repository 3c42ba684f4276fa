"""Watched values: their form, and the items of a watchlist."""
