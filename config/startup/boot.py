"""Start a process: check its key and the environment variables, then start the embedded engines."""

import math
import os
import secrets
import sys
import time
from collections.abc import Iterable
from typing import Literal, NoReturn

from tailrace.config.devserver import embedded
from tailrace.config.platform_settings.variables import secret_key_file, secret_key_of_setup
from tailrace.environment import private_files
from tailrace.environment.loading import is_set


def limit_requests() -> None:
    """Set timeouts for statements and locks on the default connection of this process; not behind a
    connection pooler, where sessions cannot have settings."""
    from django.conf import settings

    from tailrace.db import connections
    from tailrace.db.engine_database import with_session

    if not settings.DATABASES[connections.ENGINE]["POOLED"]:
        default = settings.DATABASES["default"]
        default["OPTIONS"] = with_session(
            default["OPTIONS"],
            {
                "statement_timeout": f"{settings.WEB_STATEMENT_SECONDS}s",
                "lock_timeout": f"{settings.WEB_LOCK_SECONDS}s",
            },
        )


def start(own_key: Literal["needed", "created", "unused"] = "needed") -> None:
    """Check the settings, and start the embedded engines if they are used. Sets a umask, so that
    only this user can read the files that the process writes. Without SECRET_KEY and
    var/secret_key, the process ends (`own_key`: "needed"), creates the file ("created") or
    continues ("unused"). If it cannot run, it ends with status 2 and prints one line for each wrong
    variable, or the reason."""
    os.umask(private_files.UMASK)
    if own_key == "created" and not is_set("SECRET_KEY"):
        try:  # before the settings are read
            private_files.read_or_create(secret_key_file(), secrets.token_urlsafe(50))
        except OSError as error:
            _fail(f"TAILRACE_VAR: {error}")

    from tailrace.config import settings

    if settings.env.problems:
        _fail(*map(str, settings.env.problems))
    if own_key != "unused" and not is_set("SECRET_KEY") and not secret_key_of_setup():
        _fail(
            f"SECRET_KEY: is not set, and {secret_key_file()} has no key; run"
            " `tailrace setup` once, or set SECRET_KEY to 50 random characters"
        )
    try:
        embedded.ensure(settings.VAR_DIR, settings.EMBEDDED)
    except embedded.EngineError as error:
        _fail(str(error))


WAIT_SECONDS = 2
REPEAT_SECONDS = 60


def check_server(*, wait: bool = False) -> None:
    """Print unknown variables, and a line if PostgreSQL cannot be used. Ends the process with
    status 2 if it is too old. With `wait`, returns only when it answers, and repeats the line each
    minute."""
    from tailrace.config.settings import env
    from tailrace.db.server import server_problem
    from tailrace.environment.suggest import did_you_mean

    _print_errors(
        f"{name}: no such setting{did_you_mean(name, env.names)}" for name in env.unknown()
    )
    printed_at = -math.inf
    while problem := server_problem():
        if not problem.may_pass:
            _fail(problem.message)
        if time.monotonic() - printed_at >= REPEAT_SECONDS:
            printed_at = time.monotonic()
            _print_errors([f"{problem.message}. Waiting for the server"])
        if not wait:
            return
        try:
            time.sleep(WAIT_SECONDS)
        except KeyboardInterrupt:
            sys.exit(130)


def explain_server_error(error: Exception) -> NoReturn:
    """End the process with status 2 and one line if PostgreSQL cannot be used or lacks migrations.
    Otherwise raise `error`, the error of a command."""
    from django.db import ProgrammingError

    from tailrace.db.server import server_problem

    if problem := server_problem():
        _fail(problem.message)
    if isinstance(error, ProgrammingError) and (names := _unapplied_migrations()):
        reason = str(error).splitlines()[0]
        _fail(f"{len(names)} migrations are not applied ({reason}); run `tailrace migrate`")
    raise error


def _unapplied_migrations() -> list[str]:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [str(migration) for migration, _backwards in plan]


def _fail(*lines: str) -> NoReturn:
    _print_errors(lines)
    sys.exit(2)


def _print_errors(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"tailrace: {line}", file=sys.stderr)
