"""A backend of Django's task framework: see docs/django-tasks.md."""

from tailrace.jobs.django_tasks.backend import Backend

__all__ = ["Backend"]
