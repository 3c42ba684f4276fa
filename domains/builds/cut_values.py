"""Values of an entry in the log that were cut, because the entry was too big."""

CUT = "_cut"
"""Key in the payload of such an event: the names of the values, by commas."""
