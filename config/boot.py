"""Start a process: check the environment variables, then start the embedded engines."""

import sys
from collections.abc import Iterable

from config.devserver import embedded


def start() -> None:
    """Check the settings and start the embedded engines, if they are used.

    Ends the process with status 2 and one line per wrong environment variable, or one line with
    the reason why an embedded engine cannot run.
    """
    from config import settings

    if settings.env.problems:
        sys.exit(_print_errors(map(str, settings.env.problems)))
    try:
        embedded.ensure(settings.VAR_DIR, settings.EMBEDDED)
    except embedded.EngineError as error:
        sys.exit(_print_errors([str(error)]))


def _print_errors(lines: Iterable[str]) -> int:
    """Print the lines; return the exit status."""
    for line in lines:
        print(f"tailrace: {line}", file=sys.stderr)
    return 2
