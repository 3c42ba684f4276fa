"""Load what all tests share, before Django reads its settings."""

pytest_plugins = ["tests.plugin", "tailrace.jobs.testing.fixtures"]
