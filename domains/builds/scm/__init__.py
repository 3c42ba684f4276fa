"""Commit statuses at the places where sources are kept: one module for each kind of API."""
