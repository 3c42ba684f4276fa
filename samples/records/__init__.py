"""A small repository that speaks OAI-PMH, for `make run` and for tests."""
