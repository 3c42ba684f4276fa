"""Write the job logs of handlers to the database, from a separate thread, twice a second.

Logging only puts a line into a queue of the process: the handler waits for no statement, and a
rollback of its transaction removes no line. A killed process loses the lines of its last half
second.
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
from tailrace.db.connections import with_reconnect
from tailrace.db.query import execute
from tailrace.db.sql.arrays import number_array
from tailrace.db.sql.plans import probe
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

MAX_LINES = 200
"""Lines that are kept of a claim: the last ones."""
MAX_LENGTH = 500
"""Characters of a line; the rest is cut off."""
MAX_CLAIMS = 10
"""Claims of a job whose lines are kept: the last ones."""
MAX_WAITING = 10_000
"""Lines that wait in a process to be written. More are dropped: their numbers are missing."""
FLUSH_SECONDS = 0.5
IDLE_SECONDS = 2.0
"""The thread closes its connection and ends when nothing was logged for this long."""
END_SECONDS = 2.0
"""How long a process waits for its last lines before it ends."""

Key = tuple[int, int]
"""The id of a job and the number of its claim."""
Line = tuple[int, str, str]
"""The number, time and text of a line."""


def lines_of(text: str) -> Iterator[str]:
    """Yield the last MAX_LINES lines of a text, each cut to MAX_LENGTH, without characters that
    PostgreSQL cannot store."""
    text = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    for line in text.splitlines()[-MAX_LINES:]:
        yield line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"


def add(job: int, claim_no: int, number: int, text: str) -> None:
    """Log one line. Returns at once."""
    _writer.add((job, claim_no), (number, clock.now().isoformat(timespec="milliseconds"), text))


def flush(seconds: float = END_SECONDS) -> None:
    """Wait until all logged lines are written, at most this long."""
    _writer.flush(seconds)


# The join finds committed jobs only, so a test that is rolled back leaves no lines. A job that has
# ended in the meantime is in the history of today or yesterday.
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
    """The state of the writer in one process; a forked child gets a new one."""

    lines: "queue.SimpleQueue[tuple[Key, Line] | threading.Event]" = field(
        default_factory=queue.SimpleQueue
    )
    """Lines to write, and events to set as soon as all lines before them are written."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: bool = False


class _Writer:
    """The lines that wait to be written, and the thread that writes them."""

    def __init__(self) -> None:
        self._state = _State()
        os.register_at_fork(after_in_child=self._begin)  # the thread stays in the parent
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
        except RuntimeError as error:  # there are too many threads, or the process is ending
            log.warning("job_log.no_thread", error=str(error))
            state.runs = False

    def _work(self, state: _State) -> None:
        with connections.engine():  # a connection of this thread, not of a handler or a drain
            try:
                while _write_next(state):
                    pass
            finally:
                connections.current().close()
                state.runs = False
        if not state.lines.empty():  # lines were added while `runs` was still true
            self._start(state)


def _write_next(state: _State) -> bool:
    """Write the lines of half a second. Return False if there was none for IDLE_SECONDS."""
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
    except (DatabaseError, InterfaceError) as error:  # the lines are lost; the jobs continue
        log.warning("job_log.not_written", jobs=len(claims), error=str(error).strip())
    except Exception as error:
        thread_failures.record("job-log", error)


_writer = _Writer()


@worker_process_shutdown.connect
def _at_end_of_process(**kwargs: Any) -> None:
    flush()
