"""A backend of Django's task framework: see docs/django-tasks.md."""
