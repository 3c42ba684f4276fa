"""The databases of the tests: one run at a time in a folder, and a template that is migrated once.

Each test process has a copy of the template. A template belongs to the code of its migrations and
models: other code makes another one.
"""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psycopg
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import sql

PREFIX = "tailrace_template_"
_lock: list[IO[str]] = []
"""The lock file of this run, open until the process ends."""


class InUse(Exception):
    """Another run of the tests uses the folder."""


def lock_folder(var: Path) -> None:
    """Keep a second run out of this folder, as long as this process lives. Raises InUse."""
    var.mkdir(parents=True, exist_ok=True)
    file = (var / "tests.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUse(
            f"another run of the tests uses {var}: wait until it ends, or set TAILRACE_VAR to"
            " another folder (and DATABASE_URL and BROKER_URL, where they are set)"
        ) from None
    _lock.append(file)


def leave_writes_to_the_kernel(url: str) -> None:
    """Let the embedded PostgreSQL of the tests return from a commit before the disk has it. That
    outlives each crash of the server, and only not one of the machine."""
    with psycopg.connect(url, autocommit=True) as session:
        for name in ("fsync", "full_page_writes"):
            session.execute(f"ALTER SYSTEM SET {name} = off")
        session.execute("SELECT pg_reload_conf()")


def use_template() -> None:
    """Let Django create the test database as a copy of the template, which is made if it lacks."""
    name = PREFIX + _digest()
    with maintenance() as session:
        session.execute("SELECT pg_advisory_lock(hashtext('tailrace.template'))")
        names = "SELECT datname FROM pg_database WHERE datname LIKE %s"
        known = {row[0] for row in session.execute(names, [f"{PREFIX}%"])}
        if name not in known:
            for other in known:  # of other code, or unfinished
                session.execute(_sql("DROP DATABASE IF EXISTS {} WITH (FORCE)", other))
            _make(session, name)
    connections[DEFAULT_DB_ALIAS].settings_dict["TEST"]["TEMPLATE"] = name


def _make(session: psycopg.Connection[Any], name: str) -> None:
    """Migrate a new database; it gets its name only when it is complete."""
    from tests import database_reset  # it needs the apps

    unfinished = f"{PREFIX}unfinished"
    session.execute(_sql("CREATE DATABASE {}", unfinished))
    before = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    try:
        for alias in connections:
            connections[alias].settings_dict["NAME"] = unfinished
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        database_reset.keep()
    finally:
        connections.close_all()
        for alias, database in before.items():
            connections[alias].settings_dict["NAME"] = database
    session.execute(_sql("ALTER DATABASE {} RENAME TO {}", unfinished, name))


@contextmanager
def maintenance() -> Iterator[psycopg.Connection[Any]]:
    """A session in the database that the URL names: the test databases are made beside it."""
    parameters = connections[DEFAULT_DB_ALIAS].get_connection_params()
    for unknown in ("cursor_factory", "context", "prepare_threshold", "server_side_binding"):
        parameters.pop(unknown, None)
    with psycopg.connect(**parameters, autocommit=True) as session:
        yield session


def _digest() -> str:
    """Return a digest of the code that decides how the database looks."""
    from django.apps import apps

    digest = hashlib.sha256()
    for config in sorted(apps.get_app_configs(), key=lambda config: config.name):
        folder = Path(config.module.__file__).parent  # `path` may be the folder of its pages
        for path in sorted(folder.glob("migrations/*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    digest.update(Path(__file__).with_name("database_reset.py").read_bytes())
    return digest.hexdigest()[:16]


def _sql(statement: str, *names: str) -> sql.Composed:
    return sql.SQL(statement).format(*map(sql.Identifier, names))
