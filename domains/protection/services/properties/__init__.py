"""Watched properties: their lots and addresses, their public records, and changes of these."""
