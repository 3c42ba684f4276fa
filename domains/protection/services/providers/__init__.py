"""Providers that are queried over HTTP, one per file, and `ask`, which keeps to their limits."""
