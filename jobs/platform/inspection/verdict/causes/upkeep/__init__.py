"""Causes in the threads of upkeep, and in what they should have done."""
