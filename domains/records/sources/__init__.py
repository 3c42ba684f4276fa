"""Harvest sources: the formats of sources, and how their pages are read and stored."""
