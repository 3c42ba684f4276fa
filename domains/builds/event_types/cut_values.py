"""The key that marks events whose values were cut, because the log entry was too big."""

CUT = "_cut"
"""Key in the payload of such an event. Its value is the names of the cut values, by commas."""
