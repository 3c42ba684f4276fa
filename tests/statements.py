"""Which statements each test sends to the database, and the fewest tests that send them all.

`make test` records them; `make test-services` runs on another PostgreSQL what covers them all
(tests/run_on_services.py), not each test once more. Statements are compared without their values.
"""

import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db.backends.signals import connection_created

Record = dict[str, tuple[float, list[str]]]
"""The seconds that a test took and its statements, by the test's name."""

_running: set[str] | None = None
_record: Record = {}
_NUMBERS = re.compile(r"(_\w*)?\d+")
_LISTS = re.compile(r"%s(?:,\s*%s)+")
_ROWS = re.compile(r"\(%s\)(?:,\s*\(%s\))+")
_OTHER = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT", "SET ", "RESET")


def start() -> None:
    """Record the statements of this process from now on."""
    connection_created.connect(_listen, dispatch_uid="tests.statements")


def _listen(connection: Any, **kwargs: Any) -> None:
    if _note not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, _note)  # a test pops its own from the end


def _note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
    if _running is not None and isinstance(sql, str) and not sql.startswith(_OTHER):
        _running.add(shape(sql))
    return execute(sql, params, many, context)


@lru_cache(10_000)
def shape(sql: str) -> str:
    """Return a digest of a statement without its numbers and the lengths of its lists."""
    text = _ROWS.sub("(%s)", _LISTS.sub("%s", _NUMBERS.sub("0", sql)))
    return hashlib.sha1(" ".join(text.split()).encode(), usedforsecurity=False).hexdigest()[:12]


def begin_test() -> None:
    """Count the statements for a new test."""
    global _running
    _running = set()


def end_test(name: str, seconds: float) -> None:
    """Keep what the test has sent."""
    global _running
    _record[name] = (round(seconds, 3), sorted(_running or ()))
    _running = None


def write(folder: Path) -> None:
    """Write the record of this process."""
    if _record:
        folder.mkdir(parents=True, exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "all")
        (folder / f"{worker}.json").write_text(json.dumps(_record))


def read(folder: Path) -> Record:
    """Return what the processes of a run have written; empty if there was none."""
    record: Record = {}
    for path in folder.glob("*.json"):
        record |= json.loads(path.read_text())
    return record


def cover(record: Record) -> list[str]:
    """Return tests that together send each statement: next is always the test with the most new
    ones per second."""
    left = {name: set(sent) for name, (_seconds, sent) in record.items() if sent}
    chosen: list[str] = []
    while left:
        best = max(left, key=lambda name: len(left[name]) / (record[name][0] + 0.05))
        chosen.append(best)
        done = left.pop(best)
        left = {name: rest for name, sent in left.items() if (rest := sent - done)}
    return chosen
