"""Fixtures of all tests: a worker in the test's process, folders and servers."""

import ssl
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS
from httpx._transports import default
from pytest_django.fixtures import Settings
from whitenoise.middleware import WhiteNoiseMiddleware

from tailrace.db import connections as db_connections
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim, pace
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.run import batch
from tailrace.jobs.testing.perform import work_off
from tailrace.web.accounts.security import password_hasher
from tests import database_reset
from tests.sandbox import handlers
from tests.servers.smtp import MailServer, mail_server


@pytest.fixture
def run_jobs() -> Callable[..., int]:
    """Return a worker: `run_jobs()` drains all queues (or those named) until nothing is due."""

    def work(*names: str) -> int:
        return work_off(names or list(registry.all_handlers()))

    return work


@pytest.fixture(scope="module")
def rows_of_module(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Let fixtures of a module commit rows for all its tests, which each roll back their own
    changes; afterwards the database is restored."""
    with django_db_blocker.unblock():
        yield
        database_reset.restore()


@pytest.fixture(scope="session", autouse=True)
def _quick_hashes() -> Iterator[None]:
    """Hashes of the right kind in a thousandth of the time: what is counted stays the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(password_hasher.BoundedPasswordHasher, "iterations", 1000)
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_listed_once() -> Iterator[None]:
    """WhiteNoise lists all static files for each client that a test makes: 20 ms each time."""
    list_files = WhiteNoiseMiddleware.add_files_from_finders
    listed: dict[str, dict[str, Any]] = {}

    def add_files(self: WhiteNoiseMiddleware) -> None:
        if self.static_prefix not in listed:
            list_files(self)
            listed[self.static_prefix] = self.files
        self.files = dict(listed[self.static_prefix])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_files)
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """httpx reads the certificates of all authorities for each client that is made: 25 ms each
    time. Clients that say nothing about certificates share what was read first."""
    read = default.create_ssl_context
    read_once = cache(partial(read, True, None))

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        of_all = verify is True and cert is None
        return read_once(trust_env) if of_all else read(verify, cert, trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default, "create_ssl_context", context)
        yield


@pytest.fixture(autouse=True)
def _reset_scripts() -> Iterator[None]:
    """Start each test with unscripted handlers of unknown speed, the first lane and no counts."""
    claim._last_lanes.clear()
    pace._seconds.clear()
    pace._costs.clear()
    batch._enough.clear()
    batch._last_cut.clear()
    totals._pending.take()
    yield
    handlers.script.clear()


@pytest.fixture
def ten_to_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let claims of handlers that take jobs one by one take ten, as if their calls were fast."""
    monkeypatch.setattr(pace, "MOST_JOBS", 10)
    monkeypatch.setattr(pace, "CLAIM_SECONDS", 3600.0)
    pace._seconds.update(dict.fromkeys(registry.all_handlers(), 0.001))


@pytest.fixture
def scripted() -> Callable[[str, Callable[[Any], Any]], None]:
    """Return `scripted(name, call)`: what the handler of that name does in this test."""

    def set_script(name: str, call: Callable[[Any], Any]) -> None:
        handlers.script[name] = call

    return set_script


@pytest.fixture
def storage_folder(tmp_path: Path, settings: Settings) -> Path:
    """Keep pictures in a folder of this test; return it."""
    folder = tmp_path / "pictures"
    kept = {**settings.STORAGES["photos"]}
    kept["OPTIONS"] = {**kept["OPTIONS"], "location": folder}
    settings.STORAGES = {**settings.STORAGES, "photos": kept}
    return folder


@pytest.fixture
def records_folder(tmp_path: Path, settings: Settings) -> Path:
    """Keep deposited files in a folder of this test; return it."""
    folder = tmp_path / "deposited"
    kept = {**settings.STORAGES["timeline"]}
    kept["OPTIONS"] = {**kept["OPTIONS"], "location": folder}
    settings.STORAGES = {**settings.STORAGES, "records": kept}
    return folder


@pytest.fixture
def import_folder(tmp_path: Path, settings: Settings) -> Path:
    """Keep imported files in a folder of this test; return it."""
    folder = tmp_path / "imported"
    kept = {**settings.STORAGES["timeline"]}
    kept["OPTIONS"] = {**kept["OPTIONS"], "location": folder}
    settings.STORAGES = {**settings.STORAGES, "timeline": kept}
    return folder


@pytest.fixture
def protection_folder(tmp_path: Path, settings: Settings) -> Path:
    """Keep reports and recordings in a folder of this test; return it."""
    folder = tmp_path / "protection"
    kept = {**settings.STORAGES["timeline"]}
    kept["OPTIONS"] = {**kept["OPTIONS"], "location": folder}
    settings.STORAGES = {**settings.STORAGES, "protection": kept}
    return folder


@pytest.fixture
def smtp(settings: Settings) -> Iterator[MailServer]:
    """A mail server that Django sends to."""
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        yield server


@pytest.fixture(autouse=True)
def _default_connection() -> Iterator[None]:
    """Begin each test on the default connection, whatever the one before has left; a warning names
    a test that leaves another one."""
    with db_connections.default():
        yield
        if (alias := db_connections.current().alias) != DEFAULT_DB_ALIAS:
            warnings.warn(f"this test has left the connection {alias!r} in use", stacklevel=1)
