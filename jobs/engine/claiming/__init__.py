"""Claim due jobs for a worker, in one statement."""
