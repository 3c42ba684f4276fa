"""PostgreSQL crashes while a file is parsed, in its grace and while it is promoted."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection, connections

from domains.timeline.imports import decisions, staging
from tests.chaos.engines import Engines
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import killable
from tests.timeline.kit import (
    expected,
    gpx,
    now,
    numbers,
    rescued,
    staged_tables,
    stored,
    track,
    upload,
    visible,
)

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
POINTS = track(2000)
FILE = gpx([*POINTS, *POINTS[:10], (None, 1.0, 2.0)])
AFTER_SOME_CHUNKS = 24
"""A statement of the parser, or of the promotion."""


class Server:
    """A PostgreSQL of this test alone, which Django's connections use."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self.url = engines.database_url

    def crash(self) -> None:
        """Do as `pg_ctl stop -m immediate` does, and start it anew."""
        process = self._engines.postgres.process()
        assert process
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        connections.close_all()
        self._engines.postgres.start()


@pytest.fixture
def server(tmp_path: Path, transactional_db: None) -> Iterator[Server]:
    engines = Engines(tmp_path)
    engines.postgres.start()
    try:
        _copy_schema(engines)
        own = {"HOST": str(engines.sockets), "PORT": "54329", "NAME": "chaos", "USER": "postgres"}
        described = [connections[alias].settings_dict for alias in connections]
        before = [{name: settings[name] for name in (*own, "PASSWORD")} for settings in described]
        connections.close_all()
        try:
            for settings in described:
                settings |= own | {"PASSWORD": ""}
            yield Server(engines)
        finally:
            connections.close_all()
            for settings, old in zip(described, before, strict=True):
                settings |= old
    finally:
        engines.tear_down()


def _copy_schema(engines: Engines) -> None:
    """Copy the empty database of the tests: faster than all migrations."""
    binaries = engines.postgres.binaries
    connection.ensure_connection()
    info = connection.connection.info
    dump = subprocess.run(
        [binaries / "pg_dump", "--no-owner", "--no-privileges", info.dsn],
        env={"PGPASSWORD": info.password}, check=True, capture_output=True,
    ).stdout  # fmt: skip
    target = ["-h", str(engines.sockets), "-p", "54329", "-U", "postgres", "-d", "chaos", "-q"]
    subprocess.run([binaries / "psql", *target], input=dump, check=True, capture_output=True)


def test_an_import_is_the_same_as_without_a_crash(
    server: Server, process_env: dict[str, str], import_folder: Path, run_imports: Callable[[], int]
) -> None:
    folders = {"TIMELINE_FOLDER": str(import_folder), "DATABASE_URL": server.url}
    with killable(process_env | folders) as processes:
        for moment in ("parsing", "grace", "promoting"):
            row = upload(person(moment), FILE)
            if moment == "parsing":
                run = processes.run("timeline.stage", stop_at=AFTER_SOME_CHUNKS)
            else:
                processes.run("timeline.stage")
            if moment == "promoting":
                decisions.promote_now(row.pk)
                run = processes.run("timeline.promote", stop_at=AFTER_SOME_CHUNKS)
                assert 0 < len(stored(row.user)) < len(POINTS)
            before = now(row)
            assert (before.state, before.staged > 0) == (moment, True)
            server.crash()
            assert staging.staged_count(row.pk) == 0
            if moment != "grace":
                run.go_on()
            assert (now(row).state, now(row).promote_at) == (moment, before.promote_at)
            if moment == "promoting":
                rescued()
                run_imports()
            else:
                _after_grace(row.pk, run_imports)
            assert (now(row).state, numbers(row)) == ("completed", (len(POINTS), 10, 1)), moment
            assert now(row).times_lost == (moment != "parsing")
            assert stored(row.user) == expected(POINTS)
            assert visible(row.user) == len(POINTS)
        assert staged_tables() == []


def _after_grace(id: int, run_imports: Callable[[], int]) -> None:
    """Let the parser run again, and the promotion at once."""
    rescued()
    run_imports()
    decisions.promote_now(id)
    run_imports()
