"""Check that the PostgreSQL server can be used. Messages are one line, without the password."""

from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import NotSupportedError, connections

from tailrace.db.engine_database import ENGINE, home
from tailrace.environment.conf import on_platform

OLDEST = 15
"""The oldest supported major version of PostgreSQL."""
CONNECT_SECONDS = 5
_OTHER = "set DATABASE_URL to another server (empty: an embedded one)"


@dataclass(frozen=True)
class ServerProblem:
    message: str
    may_pass: bool
    """Whether it is worth trying again, as the server may be starting."""


def server_problem() -> ServerProblem | None:
    """Open a new connection to the server; return the problem, or None if it can be used."""
    default = connections[home()]
    params = default.get_connection_params() | {"connect_timeout": CONNECT_SECONDS}
    try:
        with psycopg.connect(**params) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError as error:
        return ServerProblem(
            f"{_address(default.settings_dict)} cannot be used: {_reason(error)}; start it, or"
            f" {_OTHER}",
            may_pass=True,
        )
    return ServerProblem(too_old(version), may_pass=False) if version < OLDEST * 10_000 else None


def refuse_old(connection: Any, **kwargs: Any) -> None:
    """Receiver of `connection_created`: raise NotSupportedError if the server of our tables is too
    old. Servers of a project's other databases are not checked."""
    if connection.alias not in (home(), ENGINE) or connection.vendor != "postgresql":
        return
    if (version := connection.pg_version) < OLDEST * 10_000:
        connection.close()
        raise NotSupportedError(too_old(version))


def too_old(version: int) -> str:
    """Return the message about a server of this version, a number such as 140012."""
    address = _address(connections[home()].settings_dict)
    return (
        f"{address} has version {version // 10_000}, but Tailrace needs {OLDEST} or newer;"
        f" upgrade it, or {_OTHER if on_platform() else 'set DATABASES to another server'}"
    )


def _address(database: dict[str, Any]) -> str:
    host, port = database["HOST"] or "this machine", database["PORT"] or 5432
    return f"PostgreSQL at {host}:{port}, database {database['NAME']!r},"


def _reason(error: psycopg.OperationalError) -> str:
    """Return the last cause in libpq's message, such as `Connection refused`."""
    line = (str(error).strip().splitlines() or ["no answer"])[0]
    return " ".join(line.rpartition("failed: ")[2].split())
