"""Claim: which jobs a worker takes, in one statement."""
