"""Start a process: check its key and the environment variables, then start the embedded engines."""

import os
import secrets
import sys
from collections.abc import Iterable
from typing import Literal

from config import private_files
from config.devserver import embedded
from config.variables import secret_key_file, secret_key_of_setup
from environment.loading import is_set


def limit_requests() -> None:
    """Bound the statements of this process on the default connection, so that no request waits
    without end. It does nothing behind a pooler, where sessions have no settings of their own."""
    from django.conf import settings

    from db import connections

    if not settings.DATABASES[connections.ENGINE]["POOLED"]:
        default = settings.DATABASES["default"]
        default["OPTIONS"] = connections.with_session(
            default["OPTIONS"],
            {
                "statement_timeout": f"{settings.WEB_STATEMENT_SECONDS}s",
                "lock_timeout": f"{settings.WEB_LOCK_SECONDS}s",
            },
        )


def start(own_key: Literal["needed", "created", "unused"] = "needed") -> None:
    """Check the settings and start the embedded engines, if they are used.

    Everything that this process and its children write is private to their user. `own_key`:
    what happens without SECRET_KEY and var/secret_key. Ends the process with status 2 and one line
    per wrong environment variable, or one line with the reason why it cannot run.
    """
    os.umask(private_files.UMASK)
    if own_key == "created" and not is_set("SECRET_KEY"):
        try:  # before the settings are read
            private_files.read_or_create(secret_key_file(), secrets.token_urlsafe(50))
        except OSError as error:
            sys.exit(_print_errors([f"TAILRACE_VAR: {error}"]))

    from config import settings

    if settings.env.problems:
        sys.exit(_print_errors(map(str, settings.env.problems)))
    if own_key != "unused" and not is_set("SECRET_KEY") and not secret_key_of_setup():
        sys.exit(
            _print_errors(
                [
                    f"SECRET_KEY: is not set, and {secret_key_file()} has no key; run"
                    " `python manage.py setup` once, or set it to 50 random characters"
                ]
            )
        )
    try:
        embedded.ensure(settings.VAR_DIR, settings.EMBEDDED)
    except embedded.EngineError as error:
        sys.exit(_print_errors([str(error)]))


def _print_errors(lines: Iterable[str]) -> int:
    """Print the lines; return the exit status."""
    for line in lines:
        print(f"tailrace: {line}", file=sys.stderr)
    return 2
