"""Django's settings. `variables.py` declares the platform's environment variables, and the
`settings.py` of an app its own. Importing this module starts nothing and writes nothing."""

import gc
from typing import Any
from urllib.parse import urlsplit

from django.conf import global_settings

from tailrace.config.admin.looks import UNFOLD
from tailrace.config.devserver import embedded
from tailrace.config.installed_apps import APPS, template_libraries
from tailrace.config.platform_settings.variables import (
    PlatformSettings,
    database_settings,
    mail_settings,
)
from tailrace.db import connections
from tailrace.db.engine_database import PREPARE_AFTER, engine_database
from tailrace.environment.folders import BASE_DIR, PACKAGE_DIR
from tailrace.environment.loading import Environment, settings_classes
from tailrace.jobs.runtime.settings import JobsSettings
from tailrace.web.settings import WebSettings

__all__ = ["BASE_DIR", "UNFOLD"]

# No garbage collection until all apps are loaded (apps.py): loading creates hardly any garbage.
gc.disable()

env = Environment([PlatformSettings, *settings_classes(APPS)])
platform = env.of(PlatformSettings)
# Each field of a settings class becomes a Django setting of the same name. EMAIL_URL becomes
# several settings (EMAIL_*) for its first server; MORE_MAIL_SERVERS has those of further servers.
_mail_server, *MORE_MAIL_SERVERS = map(mail_settings, platform.EMAIL_URL or [""])
globals().update(env.values | _mail_server)
VAR_DIR = platform.VAR_DIR

# --- engines ------------------------------------------------------------------------------------
EMBEDDED = embedded.Selection(postgres=not platform.DATABASE_URL, valkey=not platform.BROKER_URL)
BROKER_URL = platform.BROKER_URL or embedded.broker_url(VAR_DIR)

_database = (
    database_settings(platform.DATABASE_URL)
    if platform.DATABASE_URL
    else embedded.database(VAR_DIR)
)
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **_database,
        # One connection per thread or worker child, checked before each request.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # A pooler may run the next statement in another session, where the cursor does not exist.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {
            "prepare_threshold": PREPARE_AFTER if platform.DATABASE_PREPARE else None,
            # Detect a lost server within seconds; the kernel's default is two hours.
            "connect_timeout": 5,
            "keepalives_idle": 30,
            "tcp_user_timeout": 10_000,
            "application_name": "tailrace",
            **_database.get("OPTIONS", {}),
        },
    }
}
DATABASES[connections.ENGINE] = engine_database(
    DATABASES["default"], pooled=not platform.DATABASE_PREPARE
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- web ----------------------------------------------------------------------------------------
_public = urlsplit(platform.PUBLIC_URL)
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
# The proxy that terminates TLS redirects to https and sends HSTS.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "tailrace.config.admin.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    *APPS,
    "tailrace.config",
]
MIDDLEWARE = [
    "tailrace.config.monitoring.liveness.answer_liveness",  # before all that may fail or wait
    "tailrace.web.pages.headers.SecurityHeaders",
    "tailrace.web.accounts.security.request.CurrentRequest",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tailrace.web.api.requests.odd_addresses.OddAddresses",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tailrace.web.pages.error_pages.AnswerBusy",
    "tailrace.web.pages.error_pages.ExplainNotAllowed",
    "tailrace.web.accounts.security.required_factor.RequireSecondFactor",
]
ROOT_URLCONF = "tailrace.config.urls"
WSGI_APPLICATION = "tailrace.config.servers.wsgi.application"
ASGI_APPLICATION = "tailrace.config.servers.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PACKAGE_DIR / "config" / "pages" / "templates"],  # override templates of unfold
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": template_libraries(),
        },
    }
]
PASSWORD_HASHERS = [
    "tailrace.web.accounts.security.password_hasher.BoundedPasswordHasher",
    *global_settings.PASSWORD_HASHERS[1:],  # the first is the same without a limit
]
PASSWORD_RESET_TIMEOUT = 3600
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "tailrace:overview"  # after a login without `next`
HOME_OF_USERS = "my_subscriptions"  # the overview redirects users who are not staff
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_USE_FINDERS = True  # serves files from the packages, without collectstatic

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = ["tailrace.config.pages.formats"]

# --- mail ---------------------------------------------------------------------------------------
SERVER_EMAIL = platform.DEFAULT_FROM_EMAIL

# --- logs and errors ----------------------------------------------------------------------------
LOGGING_CONFIG = "tailrace.config.monitoring.logs.configure"
LOGGING = {"style": platform.LOG_FORMAT, "level": platform.LOG_LEVEL}

# --- files --------------------------------------------------------------------------------------
STORAGES = global_settings.STORAGES | env.storages()

# --- API and jobs -------------------------------------------------------------------------------
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_621_440, env.of(WebSettings).API_MAX_BODY_BYTES)
if platform.SENTRY_DSN:
    reporters = env.of(JobsSettings).JOBS_ERROR_REPORTERS
    JOBS_ERROR_REPORTERS = [*reporters, "tailrace.config.monitoring.sentry.report"]

# --- Celery -------------------------------------------------------------------------------------
CELERY_BROKER_URL = BROKER_URL
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True  # outcomes live in PostgreSQL; there is no result backend
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True  # a busy worker reserves no messages (Redis)
CELERY_TASK_PUBLISH_RETRY = False  # do not wait for an unavailable broker: the tick sends again
# Flower needs the workers' task events. Wake-ups are few, so the events cost little.
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_WORKER_CONSUMER = "tailrace.config.servers.consumer:Consumer"
CELERY_BROKER_CONNECTION_TIMEOUT = 3
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_DB_REUSE_MAX = 1000  # tasks per database connection; 0: a new connection for each task
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
if BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "socket_connect_timeout": 3,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 20,
        "priority_steps": [0],  # priorities live in PostgreSQL: one list per queue
        "max_retries": 0,  # a publisher that connects must not wait
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True, "max_retries": 0}
    # Consumers and publishers must declare the same queue type, or RabbitMQ refuses one of them.
    CELERY_TASK_DEFAULT_QUEUE_TYPE = CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = "quorum"
    CELERY_BROKER_HEARTBEAT = 20

CELERY_BEAT_SCHEDULER = "tailrace.config.servers.beat_scheduler:Scheduler"
CELERY_BEAT_SYNC_EVERY = 1
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
DJANGO_CELERY_BEAT_TZ_AWARE = True
