"""What a project's Celery tasks and schedules become as durable jobs: `manage.py tailrace adopt`.
Only `moving` changes anything."""
