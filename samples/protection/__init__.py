"""Servers with the protocols of the real sources, for `make run` and for tests."""
