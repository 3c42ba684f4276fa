"""A backend of Django's task framework: see docs/how-to/django-tasks.md."""
