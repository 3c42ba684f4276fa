"""The project's own settings, and an app with event types and handlers for the tests."""

from importlib.util import find_spec

from tailrace.config import settings
from tailrace.db.engine_database import ENGINE, with_session

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
# In a test's transaction the engine uses the default connection. There PostgreSQL would compile a
# claim each time (JIT), which takes up to a minute on a slow machine; the engine's own has it off.
# A pooler refuses such options.
DATABASES = settings.DATABASES
if not DATABASES[ENGINE]["POOLED"]:
    _default = DATABASES["default"]
    _options = with_session(_default["OPTIONS"], {"jit": "off"})
    DATABASES = {**DATABASES, "default": {**_default, "OPTIONS": _options}}
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.sandbox"]
TASKS_OF_DJANGO = "django_tasks" if find_spec("django.tasks") is None else "django.tasks"
TASKS = {
    "default": {
        "BACKEND": "tailrace.django_tasks.Backend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {
            "max_attempts": 3,
            "backoff": [30, 60],
            "tasks": {
                "tests.sandbox.tasks.fail": {"max_attempts": 1},
                "tests.sandbox.tasks.remind": {"lane": "user", "fair": True, "max_running": 5},
                "tests.sandbox.tasks.exchange": {"concurrency": 3},
                "tests.sandbox.helpers.helped": {},
            },
        },
    },
    "elsewhere": {"BACKEND": f"{TASKS_OF_DJANGO}.backends.dummy.DummyBackend"},
}

# Keys and addresses of no use outside: the channels that need them reach people.
VAPID_PRIVATE_KEY = "Hr6Zy3sIyc2qBnxQVD0nRkGNxk5zKq5DkB8ZoGdA2jI"
VAPID_SUBJECT = "mailto:tests@example.org"
SMS_URL = "http://127.0.0.1:9/2010-04-01/Accounts/AC0123/Messages.json"
SMS_TOKEN = "a-token-of-tests"
SMS_FROM = "+4930000000"

# The sample brokers, whose addresses do not exist, unless a test gives its process others.
PROTECTION_BROKERS_FILE = settings.PROTECTION_BROKERS_FILE or str(
    settings.BASE_DIR / "samples" / "protection" / "brokers.yaml"
)

# Files of these end with the process; tests that look at files have a folder.
STORAGES = {
    **settings.STORAGES,
    "protection": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "records": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
}

# Most tests of builds have no metadata of projects; those of hidden projects say otherwise.
OBS_UNKNOWN_PROJECTS = "public"
