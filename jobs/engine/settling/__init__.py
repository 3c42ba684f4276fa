"""Settle: write how claims ended."""
