"""Numbers, times and states as text."""
