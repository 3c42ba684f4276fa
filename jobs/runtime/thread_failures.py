"""The failures of threads that jobs depend on, and how such a thread continues after one.

Each failure is logged as an error and recorded in tailrace_jobs_pulse, where the verdict reads it:
the log of the process may not be read by anybody.
"""

import json
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from tailrace.db import clock, connections
from tailrace.db.query import execute
from tailrace.jobs.runtime.reported_errors import class_name

log = structlog.get_logger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds until the work of a thread is started again after a failure: twice as long each time."""
SHOWN_SECONDS = 150.0
"""How long the verdict shows a failure, unless `record` is given another time. A thread that keeps
failing fails again within it."""
REPEAT_SECONDS = 5.0
"""The minimum time between two records of a thread; failures in between are not recorded."""
MAX_MESSAGE = 500

_RECORD = f"""
INSERT INTO tailrace_jobs_pulse AS p (name, at, queues, by, facts)
VALUES (%(name)s, {clock.NOW}, '[]', %(process)s, %(facts)s::jsonb)
ON CONFLICT (name) DO UPDATE SET at = excluded.at, by = excluded.by, facts = excluded.facts
  || CASE WHEN p.at < {clock.NOW} - make_interval(secs => %(seconds)s) THEN '{{}}'::jsonb
     ELSE jsonb_build_object('times', (p.facts ->> 'times')::int + 1, 'since', p.facts -> 'since')
     END
"""
_CLEAR = "DELETE FROM tailrace_jobs_pulse WHERE name = %(name)s"

_next_at: dict[str, float] = {}
"""When a failure of each thread is recorded again, by time.monotonic()."""


def keep_running(
    thread: str, work: Callable[[], Any], stopping: threading.Event | None = None
) -> None:
    """Call `work` until it returns, or an exception ends it while `stopping` is set. After any
    other exception it is called again, after a pause of at most LONGEST_PAUSE seconds."""
    stopping, pause = stopping or threading.Event(), 0.0
    while True:
        began = time.monotonic()
        try:
            return work()
        except BaseException as error:  # such as SystemExit: jobs need the thread
            if stopping.is_set():
                return None
            lasted = time.monotonic() - began > LONGEST_PAUSE
            pause = SHORTEST_PAUSE if lasted else min(max(2 * pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            record(thread, error)
            with suppress(Exception):  # the connection may be the reason of the failure
                connections.current().close()
            stopping.wait(pause)


def record(thread: str, error: BaseException, seconds: float = SHOWN_SECONDS) -> None:
    """Log the failure, and record it for the verdict, which shows it for `seconds`: at most once
    per REPEAT_SECONDS. It never raises an Exception."""
    if time.monotonic() < _next_at.get(thread, 0.0):
        return
    _next_at[thread] = time.monotonic() + REPEAT_SECONDS
    with suppress(Exception):  # a broken log must not end the thread
        log.error("thread.failed", thread=thread, exc_info=error)
    try:
        since = clock.now().isoformat()
        facts = {"thread": thread, "error_class": class_name(error), "seconds": seconds, "times": 1}
        facts |= {"error": _described(error), "since": since}
        execute(
            _RECORD, name=_row(thread), process=process(), facts=json.dumps(facts), seconds=seconds
        )
    except Exception as failure:  # the database may be away
        log.warning("thread.failure_not_recorded", thread=thread, error=type(failure).__name__)


def _described(error: BaseException) -> str:
    """Return the message of the error, which may be empty, and our last line on the way to it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    at = f" at {ours[-1].filename}:{ours[-1].lineno}, {ours[-1].line}" if ours else ""
    return f"{str(error)[:MAX_MESSAGE]}{at}".replace("\0", "").strip()


def clear(thread: str) -> None:
    """Delete the record of this process: the work of the thread has succeeded since."""
    execute(_CLEAR, name=_row(thread))


def process() -> str:
    """Return the name of this process: its host and its id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _row(thread: str) -> str:
    return f"thread:{process()} {thread}"
