"""A plugin for pytest: engines for the tests (embedded ones under var/test without DATABASE_URL and
BROKER_URL), and a database, key space or vhost, and folder for each process of pytest-xdist. This
runs before Django reads its settings."""

import gc
import math
import os
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import TestCase, TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from psycopg import sql

from tailrace.config.installed_apps import APPS
from tailrace.config.platform_settings.variables import PlatformSettings, secret_key_file
from tailrace.environment import private_files
from tailrace.environment.discovery import import_modules
from tailrace.environment.loading import settings_classes
from tests import kept_sessions

# Examples are made slowly on a busy machine.
hypothesis_settings.register_profile(
    "any machine",
    hypothesis_settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("any machine")
# Modules and tests stay until the end: what they consist of is not collected again and again.
gc.disable()
ROOT = Path(__file__).parent.parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
ENGINES = {"TAILRACE_VAR", "DATABASE_URL", "BROKER_URL", "DATABASE_PREPARE"}
"""The variables that are handed on to the tests."""


def _clean_environment() -> None:
    classes = [PlatformSettings, *settings_classes(APPS)]
    names = {variable.name for cls in classes for variable in cls.variables()}
    prefixes = tuple(prefix for cls in classes for prefix in cls.prefixes)
    for name in os.environ.keys() - ENGINES:
        if name in names or name.startswith(prefixes):
            del os.environ[name]
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"


def _first_process() -> None:
    """Start engines where no URL is given, and hand their addresses on to the workers."""
    from tailrace.config.devserver import embedded
    from tests import databases
    from tests.addresses import address

    var = Path(os.environ.setdefault("TAILRACE_VAR", str(ROOT / "var" / "test"))).resolve()
    try:
        databases.lock_folder(var)
    except databases.InUse as error:
        pytest.exit(str(error), returncode=2)
    needed = embedded.Selection(
        postgres=not os.environ.get("DATABASE_URL"), valkey=not os.environ.get("BROKER_URL")
    )
    try:
        embedded.ensure(var, needed)
    except embedded.EngineError as error:
        pytest.exit(str(error), returncode=2)
    if needed.postgres:
        os.environ["DATABASE_URL"] = address(embedded.database(var))
        databases.leave_writes_to_the_kernel(os.environ["DATABASE_URL"])
    if needed.valkey:
        os.environ["BROKER_URL"] = embedded.broker_url(var)


os.environ["PYTHONPATH"] = str(ROOT / "src")  # of the processes that tests start
_clean_environment()
if WORKER:
    from tests.addresses import key_space

    os.environ["BROKER_URL"] = key_space(os.environ["BROKER_URL"], WORKER)
    os.environ["TAILRACE_VAR"] = str(Path(os.environ["TAILRACE_VAR"]) / WORKER)
else:
    _first_process()
private_files.read_or_create(secret_key_file(), "a-key-of-tests-" * 4)
django.setup()
import_modules("admin")  # as in a process that serves pages: tests go through the admin's models
settings.JOBS_WAKE = "inline"  # in this process; those that a test starts have their waker's thread


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Let this file name the settings in each worker, after it has set the addresses."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


RECORD, CHOOSE = "TESTS_RECORD_STATEMENTS", "TESTS_CHOOSE_BY_STATEMENTS"
"""Variables with a folder: to write which statements each test sends, and to run only tests that
together send all of them, and those of which nothing is recorded (tests/statements.py)."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get(RECORD):
        from tests import statements

        if not WORKER:
            shutil.rmtree(folder, ignore_errors=True)
        statements.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if RECORD not in os.environ:
        return (yield)
    from tests import statements

    began = time.monotonic()
    statements.begin_test()
    try:
        return (yield)
    finally:
        statements.end_test(item.nodeid, time.monotonic() - began)


def pytest_sessionfinish() -> None:
    if folder := os.environ.get(RECORD):
        from tests import statements

        statements.write(Path(folder))


@pytest.hookimpl(wrapper=True)  # marks come before pytest's choice by marks, the order after all
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark the tests that use the broker, and run files with slow tests first: otherwise one
    process still has them when the others are done."""
    from tests import broker_use

    broker_use.mark(items)
    if folder := os.environ.get(CHOOSE):
        from tests import statements

        record = statements.read(Path(folder))
        chosen = set(statements.cover(record))
        others = [item for item in items if item.nodeid in record and item.nodeid not in chosen]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
    yield
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # hypothesis measures each collection: seconds in all
    gc.enable()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, django_db_blocker: Any
) -> None:
    """Let the test database be a copy of one that is migrated."""
    from tests import databases

    with django_db_blocker.unblock():
        databases.use_template()


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: Any, django_db_keepdb: bool
) -> Iterator[None]:
    """Put the database back after each test that commits, by tests/database_reset.py."""
    from tailrace.jobs.engine.claiming import bookmarks
    from tests import database_reset

    with django_db_blocker.unblock(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT format('ALTER DATABASE %I SET synchronous_commit = off', current_database())"
        )
        cursor.execute(cursor.fetchone()[0])
        database_reset.begin()
    with pytest.MonkeyPatch.context() as patch:
        # However busy the machine is, a claim in this process overlooks nothing.
        patch.setattr(bookmarks, "CHEAP_SECONDS", math.inf)
        patch.setattr(
            TransactionTestCase, "_fixture_teardown", lambda test: database_reset.restore()
        )
        patch.setattr(TransactionTestCase, "databases", set(connections))
        patch.setattr(TestCase, "_enter_atomics", classmethod(_enter_atomics))
        patch.setattr(TestCase, "_rollback_atomics", classmethod(_rollback_atomics))
        kept_sessions.use(patch)
        yield
        kept_sessions.end()
    with django_db_blocker.unblock():
        if not django_db_keepdb:
            _end_sessions()


def _end_sessions() -> None:
    """End all sessions, and let no new one begin: the database cannot be dropped while somebody
    uses it. Warn of those that a process of a test left behind, with their last statements; the
    threads of this process keep theirs until it ends."""
    ours = kept_sessions.backends()
    database = connections[DEFAULT_DB_ALIAS].settings_dict["NAME"]
    connections.close_all()
    with connections[DEFAULT_DB_ALIAS]._nodb_cursor() as cursor:
        cursor.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(database))
        )
        cursor.execute(
            "SELECT pid, application_name, state, backend_start::text, left(query, 300),"
            " pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend'",
            [database],
        )
        for pid, name, state, began, statement, _ended in cursor.fetchall():
            if pid not in ours:
                warnings.warn(
                    f"a test left a session of {name!r}, {state} since its begin at {began}; its"
                    f" last statement: {statement}",
                    stacklevel=1,
                )


_django_enters, _django_rolls_back = TestCase._enter_atomics, TestCase._rollback_atomics
_shared: list[Any] = []
"""The blocks of `one_connection`, outermost first: a TestCase enters for its class, too."""


def _enter_atomics(cls: type[TestCase]) -> Any:
    """A test that is rolled back has one connection: the engine sees what the test wrote."""
    from tailrace.jobs.testing.perform import one_connection

    _shared.append(one_connection())
    _shared[-1].__enter__()
    return _django_enters.__func__(cls)


def _rollback_atomics(cls: type[TestCase], atomics: Any) -> None:
    from tailrace.jobs.engine.settling import settle

    _django_rolls_back.__func__(cls, atomics)
    _shared.pop().__exit__(None, None, None)
    settle.forget_table()  # the test may have made partitions


@pytest.fixture
def process_env(transactional_db: None) -> dict[str, str]:
    """Environment of a process (worker, beat, command) that uses this test's database."""
    return _environment()


@pytest.fixture(scope="package")
def process_env_of_package(django_db_setup: None) -> dict[str, str]:
    """Environment of a process that is started once for all tests of a package."""
    return _environment()


def _environment() -> dict[str, str]:
    from django.db import connection

    from tests.addresses import address

    return {
        **os.environ,
        "DATABASE_URL": address(connection.settings_dict),
        "PYTHONUNBUFFERED": "1",
    }
