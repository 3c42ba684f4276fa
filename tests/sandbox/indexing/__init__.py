"""Index backends for tests with worker processes."""
