"""What a project's Celery tasks and schedules become as durable jobs: `manage.py tailrace adopt`.
Everything here only reads."""
