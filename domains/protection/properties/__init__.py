"""Watched properties: their places, what the public records say of them, and what has changed."""
