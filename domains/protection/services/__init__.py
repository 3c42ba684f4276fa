"""The services of a plan: what they watch, whom they ask, and what they do about the results."""
