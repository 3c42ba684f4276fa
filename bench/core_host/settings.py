"""Django's own settings of a new project, and what tailrace.events and tailrace.jobs need."""

import os
from pathlib import Path
from typing import Any

from environ import Env

from tailrace.db import connections
from tailrace.db.engine_database import engine_database
from tailrace.environment.loading import Environment, settings_classes

BASE_DIR = Path(__file__).parent
CORE = ["tailrace.events", "tailrace.jobs"]
globals().update(Environment(settings_classes(CORE)).values)
JOBS_PRUNE_SECONDS = 3600
SECRET_KEY = os.environ["SECRET_KEY"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    *CORE,
    "bench.core_host",
]
DATABASE_PREPARE = True
DATABASES: dict[str, dict[str, Any]] = {
    "default": {"OPTIONS": {}, **Env.db_url_config(os.environ["DATABASE_URL"])}
}
DATABASES[connections.ENGINE] = engine_database(DATABASES["default"], pooled=False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
CELERY_BROKER_URL = BROKER_URL = os.environ["BROKER_URL"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_DB_REUSE_MAX = 1000
