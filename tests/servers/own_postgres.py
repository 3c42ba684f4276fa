"""A PostgreSQL of one test alone, to crash."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, connections

from tests.chaos.engines import Engines


class OwnPostgres:
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


@contextmanager
def own_postgres(folder: Path) -> Iterator[OwnPostgres]:
    """Start a server with an empty database of the tests, which Django uses meanwhile."""
    engines = Engines(folder)
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
            yield OwnPostgres(engines)
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
