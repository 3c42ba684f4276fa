"""Celery tasks that run as jobs, by the class `tailrace.celery.Task`: see docs/how-to/celery.md."""
