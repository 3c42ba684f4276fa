"""The core's own invariants: each module holds those of one table or subject."""
