"""Exposures: their states, and what to do about them."""
