"""Programs of the latency benchmark: a publisher at a rate, and plain Celery."""
