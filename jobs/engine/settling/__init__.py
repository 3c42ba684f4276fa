"""Settle claims: write how they ended."""
