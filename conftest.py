"""Engines for the tests, and a corner of its own for each test process.

Without DATABASE_URL and BROKER_URL the tests run on embedded engines under var/test. Each process
of pytest-xdist has its own database, its own key space (or vhost) of the broker and its own folder
for mails, bus files and keys. This runs before Django reads its settings.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.test import TransactionTestCase

ROOT = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
OURS = (
    "OBS_", "BUS_", "JOBS_", "EVENTS_", "PROJECT_LOG_", "EMAIL_", "FLOWER_", "WEB_",
    "ENCRYPTION_", "WEBHOOK_", "VAPID_", "SMS_", "PHOTOS_",
)  # fmt: skip
ONCE = (
    "tests/bench/", "tests/browser/", "tests/builds/test_mails_of_captures.py", "tests/chaos/",
    "tests/config/test_embedded.py", "tests/config/test_run.py", "tests/photos/test_kafka_",
    "tests/properties/test_replanted.py", "tests/subscriptions/test_audience_property.py",
)  # fmt: skip
"""What brings its engines along, or is the same on all of them: see the marker `once`."""
ALONE = ("SECRET_KEY", "DEBUG", "ALLOWED_HOSTS", "PUBLIC_URL", "SENTRY_DSN", "LOG_FORMAT")


def _clean_environment() -> None:
    for name in list(os.environ):
        if name.startswith(OURS) or name in ALONE:
            del os.environ[name]
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"


def _first_process() -> None:
    """Start engines where no URL is given, and hand their addresses on to the workers."""
    from config import embedded
    from tests.addresses import address

    var = Path(os.environ.setdefault("TAILRACE_VAR", str(ROOT / "var" / "test"))).resolve()
    wanted = embedded.Wanted(
        postgres=not os.environ.get("DATABASE_URL"), valkey=not os.environ.get("BROKER_URL")
    )
    try:
        embedded.ensure(var, wanted)
    except embedded.EngineError as error:
        pytest.exit(str(error), returncode=2)
    if wanted.postgres:
        os.environ["DATABASE_URL"] = address(embedded.database(var))
    if wanted.valkey:
        os.environ["BROKER_URL"] = embedded.broker_url(var)


def _worker_process() -> None:
    from tests.addresses import key_space

    os.environ["BROKER_URL"] = key_space(os.environ["BROKER_URL"], WORKER)
    os.environ["TAILRACE_VAR"] = str(Path(os.environ["TAILRACE_VAR"]) / WORKER)


sys.path.insert(0, str(ROOT))
_clean_environment()
if WORKER:
    _worker_process()
else:
    _first_process()
django.setup()
settings.JOBS_WAKE = "inline"  # in this process; those that a test starts have their waker's thread


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Leave it to this file in each worker to name the settings, once it has its own corner."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is the same on all engines, and begin with the files that have slow tests: else
    one process has them left when the others are done."""
    for item in items:
        if item.path.relative_to(ROOT).as_posix().startswith(ONCE):
            item.add_marker(pytest.mark.once)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Put the database back after each test that commits, by tests/pristine.py."""
    from tests import pristine

    with django_db_blocker.unblock():
        pristine.keep()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda test: pristine.restore())
        yield


@pytest.fixture
def process_env(transactional_db: None) -> dict[str, str]:
    """Environment for a process of ours (worker, beat, command) on this test's database."""
    from django.db import connection

    from tests.addresses import address

    return {
        **os.environ,
        "DATABASE_URL": address(connection.settings_dict),
        "PYTHONUNBUFFERED": "1",
    }
