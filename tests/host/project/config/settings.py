"""The settings of a project that had its apps, its users, its queues and its workers before."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "the key of a test"
DEBUG = True
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "web",
    "jobs",
    "events",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "config.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["DB_NAME"],
        "USER": os.environ["DB_USER"],
        "PASSWORD": os.environ.get("DB_PASSWORD", ""),
        "HOST": os.environ["DB_HOST"],
        "PORT": os.environ["DB_PORT"],
        "ATOMIC_REQUESTS": True,
        "OPTIONS": {"options": "-c search_path=board,public"},
    }
}
if "DB_POOLED" in os.environ:  # PgBouncer takes no options; the database has the search_path
    DATABASES["default"] |= {"DISABLE_SERVER_SIDE_CURSORS": True, "OPTIONS": {}}
if "DB_ELSEWHERE" in os.environ:  # `default` is of no use here: all models are in `board`
    DATABASES["board"] = DATABASES["default"]
    DATABASES["default"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    DATABASE_ROUTERS = ["config.routers.ToBoard"]
    TAILRACE = {"DATABASE": "board"}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "web.Person"
USE_TZ = True
STATIC_URL = "static/"

CELERY_BROKER_URL = os.environ["BROKER"]
CELERY_RESULT_BACKEND = os.environ["RESULTS"]
CELERY_TASK_DEFAULT_QUEUE = "board"
CELERY_TASK_ROUTES = {"jobs.tasks.rank": {"queue": "slow"}}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SOFT_TIME_LIMIT = 20
CELERY_TASK_DEFAULT_RATE_LIMIT = "600/m"
CELERY_WORKER_PREFETCH_MULTIPLIER = 4

# What docs/how-to/your-project.md says: nothing else.
INSTALLED_APPS += ["django.contrib.postgres", "tailrace.events", "tailrace.jobs"]
