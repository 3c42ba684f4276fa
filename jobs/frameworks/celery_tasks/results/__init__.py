"""The results of tasks, read from their jobs."""
