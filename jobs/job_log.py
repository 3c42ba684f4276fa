"""Write what handlers log about their jobs, from a thread of its own, some times a second.

Logging only puts a line into a queue of the process: no statement runs behind a handler, and no
transaction of it undoes a line. A process that is killed loses the lines of its last half second.
"""

import atexit
import json
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from celery.signals import worker_process_shutdown
from django.db import DatabaseError, InterfaceError

from tailrace.db import clock, connections
from tailrace.db.arrays import number_array
from tailrace.db.plans import probe
from tailrace.db.query import execute
from tailrace.db.reconnect import with_reconnect

log = structlog.get_logger(__name__)

MAX_LINES = 200
"""Of a claim that are kept: its last ones."""
MAX_LENGTH = 500
"""Characters of a line; the rest is cut off."""
MAX_CLAIMS = 10
"""Of a job whose lines are kept: its last ones."""
MAX_WAITING = 10_000
"""Lines that wait in a process to be written; more are left out, which their numbers show."""
FLUSH_SECONDS = 0.5
IDLE_SECONDS = 2.0
"""The thread ends, and its connection, when nothing was logged for this long."""
END_SECONDS = 2.0
"""How long a process that ends waits for its last lines."""

Key = tuple[int, int]
"""A job and the number of its claim."""
Line = tuple[int, str, str]
"""Number, time and text."""


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text as they are stored: the last MAX_LINES of them, each cut."""
    text = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    for line in text.splitlines()[-MAX_LINES:]:
        yield line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"


def add(job: int, claim_no: int, number: int, text: str) -> None:
    """Log one line; returns at once, whatever the database does."""
    _writer.add((job, claim_no), (number, clock.now().isoformat(timespec="milliseconds"), text))


def flush(seconds: float = END_SECONDS) -> None:
    """Wait until what was logged is written, but not longer than this."""
    _writer.flush(seconds)


# Of jobs that others see: those of a test that is rolled back leave no lines. What ended meanwhile
# is in the history of today, or of yesterday.
_INSERT = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO tailrace_jobs_loglines (job_id, claim_no, first, last, lines)
SELECT v.job_id, v.claim_no, v.first, v.last, v.lines::jsonb
FROM quick, unnest(%(job)s::bigint[], %(claim_no)s::int[], %(first)s::int[], %(last)s::int[],
  %(lines)s::text[]) AS v (job_id, claim_no, first, last, lines), tailrace_jobs_job j
WHERE {probe("j.id", "v.job_id")}
  AND (j.done_on IS NULL OR j.done_on >= ({clock.NOW} AT TIME ZONE 'UTC')::date - 1)
ON CONFLICT DO NOTHING
"""
_DELETE = f"""
DELETE FROM tailrace_jobs_loglines l
USING unnest(%(job)s::bigint[], %(claim_no)s::int[], %(last)s::int[]) AS v (job_id, claim_no, last)
WHERE {probe("l.job_id", "v.job_id")} AND (
  l.claim_no <= v.claim_no - {MAX_CLAIMS} OR
  l.claim_no = v.claim_no AND l.last <= v.last - {MAX_LINES})
"""


def _write(claims: Mapping[Key, deque[Line]]) -> None:
    keys = list(claims)
    params = _columns(keys, claims) | {
        "first": number_array(claims[key][0][0] for key in keys),
        "lines": [json.dumps(list(claims[key])) for key in keys],
    }
    with_reconnect(lambda: execute(_INSERT, **params))
    long = [key for key in keys if key[1] > MAX_CLAIMS or claims[key][-1][0] > MAX_LINES]
    if long:
        execute(_DELETE, **_columns(long, claims))


def _columns(keys: list[Key], claims: Mapping[Key, deque[Line]]) -> dict[str, Any]:
    return {
        "job": number_array(job for job, _claim_no in keys),
        "claim_no": number_array(claim_no for _job, claim_no in keys),
        "last": number_array(claims[key][-1][0] for key in keys),
    }


@dataclass(slots=True)
class _State:
    """Of one process: a fork begins anew."""

    lines: "queue.SimpleQueue[tuple[Key, Line] | threading.Event]" = field(
        default_factory=queue.SimpleQueue
    )
    """What is to be written, and events to be set when all before them is written."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: bool = False


class _Writer:
    """The lines that wait to be written, and the thread that writes them."""

    def __init__(self) -> None:
        self._state = _State()
        os.register_at_fork(after_in_child=self._begin)  # the thread is the parent's
        atexit.register(self.flush, END_SECONDS)

    def _begin(self) -> None:
        self._state = _State()

    def add(self, key: Key, line: Line) -> None:
        state = self._state
        if state.lines.qsize() < MAX_WAITING:
            state.lines.put((key, line))
        if not state.runs:
            self._start(state)

    def flush(self, seconds: float) -> None:
        state = self._state
        if state.runs:
            written = threading.Event()
            state.lines.put(written)
            written.wait(seconds)

    def _start(self, state: _State) -> None:
        with state.lock:
            if state.runs:
                return
            state.runs = True
        try:
            threading.Thread(target=self._work, args=(state,), name="job-log", daemon=True).start()
        except RuntimeError as error:  # there are too many threads, or the process ends
            log.warning("job_log.no_thread", error=str(error))
            state.runs = False

    def _work(self, state: _State) -> None:
        with connections.engine():  # of this thread: neither a handler's nor a drain's
            try:
                while _write_next(state):
                    pass
            finally:
                connections.current().close()
                state.runs = False
        if not state.lines.empty():  # what came meanwhile has seen a thread that runs
            self._start(state)


def _write_next(state: _State) -> bool:
    """Write the lines of half a second, the last ones of each claim; return False if for some time
    there was none."""
    claims: dict[Key, deque[Line]] = {}
    flushed = None
    until = time.monotonic() + IDLE_SECONDS
    while flushed is None and (patience := until - time.monotonic()) > 0:
        try:
            item = state.lines.get(timeout=patience)
        except queue.Empty:
            break
        if isinstance(item, threading.Event):
            flushed = item
            break
        if not claims:
            until = time.monotonic() + FLUSH_SECONDS
        key, line = item
        claims.setdefault(key, deque(maxlen=MAX_LINES)).append(line)
    if claims:
        _write_or_log(claims)
    if flushed is not None:
        connections.current().close()
        flushed.set()
    return bool(claims) or flushed is not None


def _write_or_log(claims: Mapping[Key, deque[Line]]) -> None:
    try:
        _write(claims)
    except (DatabaseError, InterfaceError) as error:  # the lines are lost; the jobs go on
        log.warning("job_log.not_written", jobs=len(claims), error=str(error).strip())


_writer = _Writer()


@worker_process_shutdown.connect
def _at_end_of_process(**kwargs: Any) -> None:
    flush()
