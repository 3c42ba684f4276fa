"""Every setting and every default. All of them come from environment variables.

`manage.py environment` prints the variables as a table (docs/configuration.md is that table).
Importing this module starts nothing and writes nothing.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from config import embedded, kafka
from config.environment import MAIL_FILES, Environment, database_settings, mail_settings
from config.unfold import UNFOLD

__all__ = ["UNFOLD"]

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

VAR_DIR = Path(
    env.text(
        "TAILRACE_VAR",
        str(BASE_DIR / "var"),
        "folder of everything that is written: engines, mails, bus, keys",
        shown="var",
    )
).resolve()

# --- engines ------------------------------------------------------------------------------------
POSTGRES_SCHEMES = ("postgres", "postgresql", "psql", "pgsql")
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp")

DATABASE_URL = env.url(
    "DATABASE_URL",
    "",
    POSTGRES_SCHEMES,
    "PostgreSQL 15 or newer; empty: an embedded one under var/",
    instead="Tailrace needs PostgreSQL. Set DATABASE_URL to postgres://user:password@host/name, "
    "or leave it empty to use the embedded PostgreSQL",
)
BROKER_URL = env.url(
    "BROKER_URL",
    "",
    BROKER_SCHEMES,
    "Redis 7, Valkey or RabbitMQ 3.12 and newer; empty: an embedded Valkey under var/",
    instead="Set BROKER_URL to redis://host:6379/0, or leave it empty to use the embedded Valkey",
)
EMBEDDED = embedded.Wanted(postgres=not DATABASE_URL, valkey=not BROKER_URL)
BROKER_URL = BROKER_URL or embedded.broker_url(VAR_DIR)

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **(database_settings(env, DATABASE_URL) or embedded.database(VAR_DIR)),
        # One connection per thread or worker child, proved alive before each request.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }
}
# A server that went away without a word is noticed within seconds, not after the kernel's hours.
DATABASES["default"].setdefault("OPTIONS", {})
DATABASE_PREPARE = env.flag(
    "DATABASE_PREPARE",
    True,
    "let the server keep parsed statements; no behind a pooler that mixes transactions of"
    " connections, such as PgBouncer before 1.21",
)
DATABASES["default"]["OPTIONS"].setdefault("prepare_threshold", 5 if DATABASE_PREPARE else None)
for _option, _value in {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "tcp_user_timeout": 10_000,
    "application_name": "tailrace",
}.items():
    DATABASES["default"]["OPTIONS"].setdefault(_option, _value)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- web ----------------------------------------------------------------------------------------
WEB_HOST = env.text("WEB_HOST", "127.0.0.1", "address of the web server")
WEB_PORT = env.number("WEB_PORT", 8000, "port of the web server", least=1)
WEB_THREADS = env.number("WEB_THREADS", 8, "threads of each web process", least=1)
WEB_PROCESSES = env.number("WEB_PROCESSES", 1, "web processes", least=1)
_key_file = VAR_DIR / "secret_key"
INSECURE_KEY = "insecure-key-of-a-checkout-without-setup"
SECRET_KEY = env.text(
    "SECRET_KEY",
    _key_file.read_text().strip() if _key_file.is_file() else INSECURE_KEY,
    "signs sessions and links; empty: the key that setup keeps in var/secret_key",
    shown="",
)
DEBUG = env.flag("DEBUG", False, "Django's error pages, with source code: never in production")
PUBLIC_URL = env.url(
    "PUBLIC_URL",
    f"http://127.0.0.1:{WEB_PORT}",
    ("http", "https"),
    "where people reach Tailrace; links in mails and feeds start so",
    shown="http://127.0.0.1:8000",
).rstrip("/")
_public = urlsplit(PUBLIC_URL)
ALLOWED_HOSTS = env.names(
    "ALLOWED_HOSTS",
    list(dict.fromkeys(["127.0.0.1", "localhost", "[::1]", _public.hostname or "localhost"])),
    "host names that requests may carry; the public one is always meant to be there",
)
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
SESSION_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Redirects to https and HSTS belong to the proxy that ends TLS in front of Tailrace.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "ninja",  # the page of the API's documentation, with its scripts
    "events",
    "jobs",
    "subscriptions",
    "domains.builds",
    "domains.photos",
    "config",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"
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
LOGIN_REDIRECT_URL = "overview"  # where one lands who came to the login by hand
HOME_OF_USERS = "my_subscriptions"  # where the overview leads those who are not staff
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_USE_FINDERS = True  # serves the packages' files as they are; no collectstatic step

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# --- mail ---------------------------------------------------------------------------------------
EMAIL_URL = env.url(
    "EMAIL_URL",
    "",
    ("smtp", "smtps", "smtp+tls", "smtp+ssl", "filemail", "consolemail", "memorymail", "dummymail"),
    "mail server, smtp+tls://user:password@host:587; empty: files under var/mail",
)
EMAIL_BACKEND = MAIL_FILES
EMAIL_FILE_PATH = str(VAR_DIR / "mail")
EMAIL_TIMEOUT = 30
if EMAIL_URL:
    globals().update(mail_settings(env, EMAIL_URL))
DEFAULT_FROM_EMAIL = env.text(
    "DEFAULT_FROM_EMAIL", "Tailrace <tailrace@localhost>", "sender of all mails"
)
SERVER_EMAIL = DEFAULT_FROM_EMAIL

# --- webhooks, push, texts ----------------------------------------------------------------------
ENCRYPTION_KEYS = env.keys(
    "ENCRYPTION_KEYS",
    "encrypt what is secret in the database, the newest first; older ones still decrypt;"
    " empty: a key derived from SECRET_KEY",
)
WEBHOOK_ALLOW_HTTP = env.flag(
    "WEBHOOK_ALLOW_HTTP", False, "let people have webhooks sent to http://, unencrypted"
)
WEBHOOK_ALLOWED_NETWORKS = env.networks(
    "WEBHOOK_ALLOWED_NETWORKS",
    "networks that webhooks may reach although they are not public, e.g. 10.20.0.0/16",
)
WEBHOOK_CA_FILE = env.text(
    "WEBHOOK_CA_FILE", "", "PEM file of authorities that webhooks trust beside the public ones"
)
WEBHOOK_PER_SECOND = env.number(
    "WEBHOOK_PER_SECOND", 20, "webhooks that one endpoint is sent per second, at most", least=1
)
VAPID_PRIVATE_KEY = env.key(
    "VAPID_PRIVATE_KEY",
    "signs push messages, from `manage.py make_vapid_keys`; empty: nobody gets any",
)
VAPID_SUBJECT = env.url(
    "VAPID_SUBJECT", "", ("mailto", "https"), "whom a push service writes to, mailto:… or https://…"
)
SMS_URL = env.url(
    "SMS_URL",
    "",
    ("https", "http"),
    "what sends texts, https://…/2010-04-01/Accounts/<SID>/Messages.json; empty: nobody gets any",
)
SMS_TOKEN = env.text("SMS_TOKEN", "", "the token of that account")
SMS_FROM = env.text("SMS_FROM", "", "sender of texts: a number, or the SID of a messaging service")

# --- logs and errors ----------------------------------------------------------------------------
LOG_FORMAT = env.choice(
    "LOG_FORMAT", "console", ("console", "json"), "json for production, console to read"
)
LOG_LEVEL = env.choice(
    "LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"), "least level that is logged"
)
LOGGING_CONFIG = "config.logs.configure"
LOGGING = {"style": LOG_FORMAT, "level": LOG_LEVEL}
SENTRY_DSN = env.url("SENTRY_DSN", "", ("http", "https"), "error reports to Sentry; empty: none")

# --- builds: the backend, the bus, the project log ----------------------------------------------
OBS_BACKENDS: dict[str, str] = env.urls(
    "OBS_BACKEND_URL",
    {},
    ("http", "https"),
    "build service backends whose notifications are read, by name; one URL alone is named obs",
    unnamed="obs",
)
OBS_POLL_SECONDS = env.number(
    "OBS_POLL_SECONDS", 17, "seconds between two reads of a backend", least=1
)
OBS_LONG_POLL = env.flag("OBS_LONG_POLL", False, "let the backend hold the request until news come")
OBS_VIEW = env.choice("OBS_VIEW", "json", ("json", "xml"), "form in which the log is asked for")
OBS_NOPRUNE = env.flag("OBS_NOPRUNE", True, "ask the backend to keep what it has already sent")
OBS_PAGE_LIMIT_BYTES = env.number(
    "OBS_PAGE_LIMIT_BYTES", 16 * 1024 * 1024, "largest answer of a backend that is read", least=1024
)
OBS_TIMEOUT_SECONDS = env.number(
    "OBS_TIMEOUT_SECONDS", 30, "seconds until a silent backend counts as away", least=1
)
BUS_BACKENDS: dict[str, str] = env.urls(
    "BUS_BACKENDS",
    {"file": f"file://{VAR_DIR / 'bus.ndjson'}"},
    ("file", "amqp", "amqps", "http", "https"),
    "where each event is announced, by name",
    shown="file=file://var/bus.ndjson",
)
BUS_NAMESPACE = env.text("BUS_NAMESPACE", "opensuse.obs", "first words of each routing key")
BUS_WEBHOOK_SECRET = env.text(
    "BUS_WEBHOOK_SECRET", "", "whsec_… key that signs what http(s) bus backends get"
)
BUS_SECRETS: dict[str, str] = env.by_pattern(
    "BUS_SECRET_", "key of the one bus backend of that name (in capitals)"
)
BUS_SOURCE_URL = env.url(
    "BUS_SOURCE_URL", "", ("amqp", "amqps"), "bus that is listened to as a source; empty: none"
)
PROJECT_LOG_BUILD_DAYS = env.number(
    "PROJECT_LOG_BUILD_DAYS", 1, "days that build results stay in project logs", least=1
)
PROJECT_LOG_DAYS = env.number(
    "PROJECT_LOG_DAYS", 10, "days that all else stays in project logs", least=1
)

# --- photos: gatherings and the sweeper behind them ----------------------------------------------
PHOTOS_DISTANCE_METERS = env.number(
    "PHOTOS_DISTANCE_METERS",
    75,
    "metres, along the great circle, within which photos gather",
    least=1,
    most=5000,
)
PHOTOS_TIME_WINDOW_MINUTES = env.number(
    "PHOTOS_TIME_WINDOW_MINUTES", 15, "minutes within which photos gather", least=1, most=1440
)
PHOTOS_MIN_FOR_GATHERING = env.number(
    "PHOTOS_MIN_FOR_GATHERING", 5, "photos that make a gathering", least=2, most=1000
)
PHOTOS_SWEEP_SECONDS = env.number(
    "PHOTOS_SWEEP_SECONDS", 300, "seconds between two sweeps of the photos", least=1, most=86_400
)
PHOTOS_SWEEP_LOOKBACK_MINUTES = env.number(
    "PHOTOS_SWEEP_LOOKBACK_MINUTES",
    60,
    "minutes that a photo in no gathering is tried again, until it counts as unclusterable",
    least=1,
    most=10_080,
)
PHOTOS_SWEEP_BATCH = env.number(
    "PHOTOS_SWEEP_BATCH", 200, "photos that one sweep looks at, at most", least=1, most=10_000
)
PHOTOS_FINALIZE_AFTER_MINUTES = env.number(
    "PHOTOS_FINALIZE_AFTER_MINUTES",
    60,
    "minutes without a new photo after which a gathering has ended",
    least=1,
    most=10_080,
)
for _name in ("PHOTOS_SWEEP_LOOKBACK_MINUTES", "PHOTOS_FINALIZE_AFTER_MINUTES"):
    if globals()[_name] < PHOTOS_TIME_WINDOW_MINUTES:
        env.refuse(
            _name,
            globals()[_name],
            f"is shorter than PHOTOS_TIME_WINDOW_MINUTES, {PHOTOS_TIME_WINDOW_MINUTES}",
        )
if PHOTOS_SWEEP_LOOKBACK_MINUTES * 60 < PHOTOS_SWEEP_SECONDS:
    env.refuse(
        "PHOTOS_SWEEP_LOOKBACK_MINUTES",
        PHOTOS_SWEEP_LOOKBACK_MINUTES,
        f"is shorter than PHOTOS_SWEEP_SECONDS, {PHOTOS_SWEEP_SECONDS}: no photo would be tried"
        " again",
    )

# --- photos: Kafka ------------------------------------------------------------------------------
PHOTOS_KAFKA_BROKERS = env.addresses(
    "PHOTOS_KAFKA_BROKERS",
    "Kafka brokers that photos and gatherings are announced to; empty: none",
)
PHOTOS_KAFKA_UPLOADS_TOPIC = env.topic(
    "PHOTOS_KAFKA_UPLOADS_TOPIC", "photo-uploads", "topic of each photo that was uploaded"
)
PHOTOS_KAFKA_UPDATES_TOPIC = env.topic(
    "PHOTOS_KAFKA_UPDATES_TOPIC", "event-updates", "topic of gatherings, by gathering in order"
)
PHOTOS_KAFKA_DLQ_TOPIC = env.topic(
    "PHOTOS_KAFKA_DLQ_TOPIC", "photo-dlq", "topic of messages that the inlet cannot take"
)
PHOTOS_KAFKA_INLET_TOPIC = env.topic(
    "PHOTOS_KAFKA_INLET_TOPIC", "", "topic that photos are read from; empty: none are read"
)
PHOTOS_KAFKA_GROUP = env.topic(
    "PHOTOS_KAFKA_GROUP", "tailrace-photos", "group of consumers that reads that topic"
)
PHOTOS_KAFKA_OPTIONS = kafka.options(env, "PHOTOS_KAFKA_OPTION_")
kafka.check(
    env,
    PHOTOS_KAFKA_BROKERS,
    PHOTOS_KAFKA_INLET_TOPIC,
    {
        "PHOTOS_KAFKA_UPLOADS_TOPIC": PHOTOS_KAFKA_UPLOADS_TOPIC,
        "PHOTOS_KAFKA_UPDATES_TOPIC": PHOTOS_KAFKA_UPDATES_TOPIC,
        "PHOTOS_KAFKA_DLQ_TOPIC": PHOTOS_KAFKA_DLQ_TOPIC,
    },
)
# --- photos: pictures ---------------------------------------------------------------------------
PHOTOS_FOLDER = Path(
    env.text(
        "PHOTOS_FOLDER",
        str(VAR_DIR / "photos"),
        "folder of the pictures, the same for all web processes",
        shown="var/photos",
    )
).resolve()
PHOTOS_MAX_MEGABYTES = env.number(
    "PHOTOS_MAX_MEGABYTES", 25, "megabytes that a picture may have", least=1, most=1000
)
PHOTOS_MAX_MEGAPIXELS = env.number(
    "PHOTOS_MAX_MEGAPIXELS",
    64,
    "million pixels that a picture may have; each takes 4 bytes of memory while it is read",
    least=1,
    most=1000,
)
PHOTOS_TILES_URL = env.url(
    "PHOTOS_TILES_URL",
    "",
    ("http", "https"),
    "tiles of the map, https://host/{z}/{x}/{y}.png; empty: a grid of degrees",
)
PHOTOS_TILES_CREDIT = env.text(
    "PHOTOS_TILES_CREDIT", "", "whom the map names as the maker of its tiles"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "photos": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": PHOTOS_FOLDER,
            "file_permissions_mode": 0o640,
            "directory_permissions_mode": 0o750,
        },
    },
}

# --- API ----------------------------------------------------------------------------------------
API_RATE = env.number(
    "API_RATE", 10.0, "requests per second that a token or a user may make for long", least=0.01
)
API_BURST = env.number("API_BURST", 100, "requests that may come at once", least=1)
API_MAX_BODY_BYTES = env.number(
    "API_MAX_BODY_BYTES", 1_048_576, "bytes that the body of a request may have", least=1024
)
API_MAX_BATCH = env.number(
    "API_MAX_BATCH", 100, "events that one request may bring, at most", least=1
)
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_621_440, API_MAX_BODY_BYTES)

# --- jobs ---------------------------------------------------------------------------------------
EVENTS_MAX_PAYLOAD_BYTES = env.number(
    "EVENTS_MAX_PAYLOAD_BYTES", 65_536, "bytes that the payload of an event may have", least=1024
)
JOBS_RETENTION_DAYS = env.number(
    "JOBS_RETENTION_DAYS", 30, "days that finished jobs are kept", least=1
)
JOBS_FAILED_RETENTION_DAYS = env.number(
    "JOBS_FAILED_RETENTION_DAYS", 90, "days that failed jobs are kept", least=1
)
JOBS_RECORDS_RETENTION_DAYS = env.number(
    "JOBS_RECORDS_RETENTION_DAYS", 7, "days that slots, sweep runs and minutes are kept", least=1
)
EVENTS_RETENTION_DAYS = env.number(
    "EVENTS_RETENTION_DAYS", 90, "days that events are kept", least=1
)
NOTIFICATIONS_RETENTION_DAYS = env.number(
    "NOTIFICATIONS_RETENTION_DAYS",
    365,
    "days that notifications, inboxes and digests are kept",
    least=1,
)
MAIL_BURST = env.number(
    "MAIL_BURST",
    20,
    "mails that one person gets at once within 10 minutes; the others come in a digest",
    least=1,
)
DELIVERIES_RETENTION_DAYS = env.number(
    "DELIVERIES_RETENTION_DAYS", 30, "days that tries to deliver to webhooks are kept", least=1
)
JOBS_DRAIN_SECONDS = env.number(
    "JOBS_DRAIN_SECONDS", 5, "seconds until a drain hands its queue over", least=1
)
JOBS_TIME_LIMIT = env.number(
    "JOBS_TIME_LIMIT", 600, "seconds that one call of a handler may take", least=1
)
JOBS_WAKE = env.choice(
    "JOBS_WAKE",
    "thread",
    ("thread", "inline"),
    "who tells the workers after a commit: a thread of the process, or the publisher itself",
)
JOBS_TICK_SECONDS = env.number(
    "JOBS_TICK_SECONDS", 1, "seconds between two looks for due queues", least=1
)
JOBS_SWEEP_SECONDS = env.number("JOBS_SWEEP_SECONDS", 15, "seconds between two sweeps", least=1)
JOBS_PRUNE_SECONDS = 3600
JOBS_ERROR_REPORTERS = env.names(
    "JOBS_ERROR_REPORTERS",
    ["jobs.report.to_log"],
    "callables that are told of each failed attempt, by dotted path; Sentry comes on top",
)
if SENTRY_DSN:
    JOBS_ERROR_REPORTERS.append("config.sentry.report")

# --- Celery -------------------------------------------------------------------------------------
CELERY_BROKER_URL = BROKER_URL
CELERY_TIMEZONE = "UTC"
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = CELERY_EVENT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True  # outcomes live in PostgreSQL; there is no result backend
CELERY_TASK_ACKS_LATE = False  # a message is a wake-up; the tick replaces a lost one
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_PUBLISH_RETRY = False  # nobody waits for a broker that is away: the tick sends again
# Flower lives by the workers' task events. Wake-ups are few, so they cost little here; the event
# on sending is left off, since publishers would pay for it.
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_TASK_SEND_SENT_EVENT = False
CELERY_BROKER_CONNECTION_TIMEOUT = 3
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_DB_REUSE_MAX = 1000  # tasks on one database connection; 0 would connect for each task
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
if BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "socket_connect_timeout": 3,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 20,
        "priority_steps": [0],  # priorities live in PostgreSQL: one list per queue
        "max_retries": 0,  # of a publisher that connects: it must not wait
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True, "max_retries": 0}
    # One type for those who consume and those who only publish, or RabbitMQ refuses one of them.
    CELERY_TASK_DEFAULT_QUEUE_TYPE = CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = "quorum"
    CELERY_BROKER_HEARTBEAT = 20

CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_SYNC_EVERY = 1
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
DJANGO_CELERY_BEAT_TZ_AWARE = True
# A message that nobody took expires, so that a worker that was away runs no backlog of ticks. It
# lives for 10 s at least: clocks of two machines may differ by more than a tick.
CELERY_BEAT_SCHEDULE = {
    name: {
        "task": name,
        "schedule": float(seconds),
        "options": {"queue": name, "expire_seconds": max(10, int(seconds))},
    }
    for name, seconds in (
        ("jobs.tick", JOBS_TICK_SECONDS),
        ("jobs.sweep", JOBS_SWEEP_SECONDS),
        ("jobs.prune", JOBS_PRUNE_SECONDS),
    )
}

# --- ports and processes of `make run` ----------------------------------------------------------
FLOWER_PORT = env.number("FLOWER_PORT", 5555, "port of Flower, on 127.0.0.1", least=1)
FLOWER_BASIC_AUTH = env.text(
    "FLOWER_BASIC_AUTH", "", "user:password of Flower; empty: made by setup, in var/flower_auth"
)
SAMPLE_BACKEND_PORT = env.number(
    "SAMPLE_BACKEND_PORT", 5352, "port of the sample backend, if no OBS_BACKEND_URL is set", least=1
)
WORKER_CONCURRENCY = env.number("WORKER_CONCURRENCY", 2, "worker processes of `make run`", least=1)
