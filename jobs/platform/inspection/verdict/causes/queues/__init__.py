"""Causes in one queue: its state, its failed jobs, its destinations."""
