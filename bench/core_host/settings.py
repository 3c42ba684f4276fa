"""Django's own settings of a new project, with tailrace.events and tailrace.jobs."""

import os
from pathlib import Path
from typing import Any

from environ import Env

BASE_DIR = Path(__file__).parent
SECRET_KEY = os.environ["SECRET_KEY"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "tailrace.events",
    "tailrace.jobs",
    "bench.core_host",
]
DATABASES: dict[str, dict[str, Any]] = {"default": Env.db_url_config(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
CELERY_BROKER_URL = os.environ["BROKER_URL"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_DB_REUSE_MAX = 1000
