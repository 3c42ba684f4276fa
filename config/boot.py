"""What each process does first: refuse a wrong environment, then have its engines."""

import sys
from collections.abc import Iterable

from config import embedded


def start() -> None:
    """Make sure that the settings are sound and that the engines run.

    Ends the process with status 2 and one line per wrong environment variable, or one
    line that says why an embedded engine cannot run.
    """
    from config import settings

    if settings.env.problems:
        sys.exit(_say(str(problem) for problem in settings.env.problems))
    try:
        embedded.ensure(settings.VAR_DIR, settings.EMBEDDED)
    except embedded.EngineError as error:
        sys.exit(_say([str(error)]))


def _say(lines: Iterable[str]) -> int:
    for line in lines:
        print(f"tailrace: {line}", file=sys.stderr)
    return 2
