"""The invariants of depositions, records and their indexes."""
