"""The backend of Django's task framework.

TASKS = {"default": {"BACKEND": "tailrace.django_tasks.Backend"}}
"""

from tailrace.jobs.frameworks.django_tasks.backend import Backend

__all__ = ["Backend"]
