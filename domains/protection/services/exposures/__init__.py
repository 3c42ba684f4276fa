"""Exposures: changes of their state, advice, and the check of passwords."""
