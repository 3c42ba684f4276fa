"""Django's settings of a new project, with tailrace.events and tailrace.jobs."""

import os
from pathlib import Path
from typing import Any

from environ import Env

BASE_DIR = Path(__file__).parent
SECRET_KEY = "the key of a test"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "tailrace.events",
    "tailrace.jobs",
]
DATABASES: dict[str, dict[str, Any]] = {"default": Env.db_url_config(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
CELERY_BROKER_URL = os.environ["TEST_BROKER"]
