"""The benchmarks' settings with django-tasks, and the backend that BENCH_TASKS names."""

import os

from bench import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "django_tasks", "django_tasks_db"]
TASKS = {"default": {"BACKEND": os.environ.get("BENCH_TASKS", "django_tasks_db.DatabaseBackend")}}
