"""An effect is a line in a file, outside of every database, and is never rolled back."""

import os
import time

_files: dict[int, int] = {}


def effect(*words: object) -> None:
    """Append a line; the time is CLOCK_MONOTONIC's, one for all processes of a machine."""
    process = os.getpid()
    if process not in _files:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        _files[process] = os.open(os.environ["CHAOS_EFFECTS"], flags, 0o644)
    at = time.monotonic() - float(
        os.environ.get("CHAOS_AHEAD", "0")
    )  # faketime moves this one, too
    line = " ".join(map(str, (at, *words))) + "\n"
    os.write(_files[process], line.encode())
