"""Celery tasks that run as jobs: see docs/celery.md. Their class is `tailrace.celery.Task`."""
