"""Watched values: their normalized form, and the items of a watchlist."""
