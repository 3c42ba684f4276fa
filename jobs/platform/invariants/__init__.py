"""The core's own invariants, one module for each table or subject."""
