"""Causes at the workers and their processes."""
