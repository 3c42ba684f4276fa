"""A small OAI-PMH repository, for `make run` and for tests."""
