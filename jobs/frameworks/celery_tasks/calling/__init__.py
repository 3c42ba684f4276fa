"""Run the job of a task: its call by Celery's tracer, and its limits."""
