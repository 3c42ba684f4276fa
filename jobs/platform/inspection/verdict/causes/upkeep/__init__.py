"""Causes in the threads of upkeep, and in upkeep that is late."""
