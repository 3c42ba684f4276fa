"""Check invariants and repair their violations."""
