"""Causes at the broker, the database and the disk."""
