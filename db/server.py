"""Whether the PostgreSQL server can be used; if not, why, in one line without its password."""

from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, connections

OLDEST = 15
"""The oldest version of PostgreSQL that has what our statements need."""
CONNECT_SECONDS = 5


@dataclass(frozen=True)
class ServerProblem:
    """Why the server cannot be used."""

    message: str
    may_pass: bool
    """Whether it may be different in a moment: the server does not answer."""


def server_problem() -> ServerProblem | None:
    """Connect once, on a connection of its own; return why the server cannot be used, or None."""
    default = connections[DEFAULT_DB_ALIAS]
    params = default.get_connection_params() | {"connect_timeout": CONNECT_SECONDS}
    try:
        with psycopg.connect(**params) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError as error:
        return ServerProblem(
            f"{_address(default.settings_dict)} cannot be used: {_reason(error)}; start it, or set"
            " DATABASE_URL to another server (empty: an embedded one)",
            may_pass=True,
        )
    return ServerProblem(too_old(version), may_pass=False) if version < OLDEST * 10_000 else None


def refuse_old(connection: Any, **kwargs: Any) -> None:
    """Receiver of `connection_created`: raise NotSupportedError for a server that is too old."""
    if (version := connection.pg_version) < OLDEST * 10_000:
        connection.close()
        raise NotSupportedError(too_old(version))


def too_old(version: int) -> str:
    """Return the message about a server of this version, such as 140012."""
    address = _address(connections[DEFAULT_DB_ALIAS].settings_dict)
    return (
        f"{address} is of version {version // 10_000}, and Tailrace needs {OLDEST} or newer;"
        " upgrade it, or set DATABASE_URL to another server (empty: an embedded one)"
    )


def _address(database: dict[str, Any]) -> str:
    host, port = database["HOST"] or "this machine", database["PORT"] or 5432
    return f"PostgreSQL at {host}:{port}, database {database['NAME']!r},"


def _reason(error: psycopg.OperationalError) -> str:
    """Return the last cause that libpq names, such as `Connection refused`."""
    line = (str(error).strip().splitlines() or ["no answer"])[0]
    return " ".join(line.rpartition("failed: ")[2].split())
