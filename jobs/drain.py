"""drain: one run of a handler's Celery task: claim → run → settle, for a slice of time."""

import time
from collections import Counter
from collections.abc import Sequence

import structlog
from django.conf import settings

from events import clock
from events.hot import hot_cursor
from jobs import registry, report, wake
from jobs.claim import Limits, claim
from jobs.handler import Handler
from jobs.lease import heartbeat
from jobs.reconnect import on_a_live_connection
from jobs.run import Verdict, run
from jobs.settle import settle
from jobs.throughput import record

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 0.25
"""Verdicts wait at most this long for others to be settled with."""


TURN_SECONDS = 0.2
"""After this a drain hands over if another queue waits, so that a herd in one queue does not keep
the others from a worker that they share."""


def drain(name: str) -> int:
    """Work on the queue for up to JOBS_DRAIN_SECONDS, then hand over; return the jobs settled.

    Where other queues wait, the turn is shorter: see TURN_SECONDS.
    """
    handler = registry.get(name)
    until = time.monotonic() + settings.JOBS_DRAIN_SECONDS
    tally: Counter[str] = Counter()
    began = time.monotonic()
    turn = began + min(TURN_SECONDS, settings.JOBS_DRAIN_SECONDS)
    limits = on_a_live_connection(lambda: begin(handler))
    while limits is not None:
        done = one_batch(handler, limits, until)
        if done is None:
            break
        tally += done
        if time.monotonic() >= turn:
            turn += TURN_SECONDS
            if time.monotonic() >= until or _others_wait(name):
                wake.wake([name])
                break
    if tally:
        record(name, tally, time.monotonic() - began)
    return sum(tally.values())


_BEGIN = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE jobs_queue q SET awake = false, drained_at = {clock.NOW}, resends = 0
FROM quick WHERE q.name = %(name)s
RETURNING q.paused_at IS NOT NULL, q.max_running, q.rate_limit
"""


def begin(handler: Handler) -> Limits | None:
    """Clear the flag `awake` before the first claim: what is committed after this statement sends
    a message of its own, what was committed before it is seen by the claim."""
    with hot_cursor() as cursor:
        cursor.execute(_BEGIN, clock.params() | {"name": handler.name})
        row = cursor.fetchone()
    if row is None:
        log.error("drain.no_queue", queue=handler.name, hint="run `manage.py migrate`")
        return None
    paused, max_running, rate_limit = row
    if paused:
        return None
    return Limits(max_running or handler.max_running, rate_limit)


# Awake means that a message is out and nobody has begun on it. One that has been out for long is
# of a queue without workers.
_OTHERS = f"""
SELECT EXISTS (
  SELECT 1 FROM jobs_queue WHERE awake AND name <> %(name)s AND paused_at IS NULL
    AND awake_at BETWEEN {clock.NOW} - interval '10 seconds' AND {clock.NOW})
"""


def _others_wait(name: str) -> bool:
    with hot_cursor() as cursor:
        cursor.execute(_OTHERS, clock.params() | {"name": name})
        return bool(cursor.fetchone()[0])


def one_batch(handler: Handler, limits: Limits, until: float) -> Counter[str] | None:
    """Claim a batch, run it and settle it in groups; return how many jobs ended in which way, None
    if none was due. `until`: see `run`."""
    jobs = claim(handler, limits)
    if not jobs:
        return None
    if len(jobs) == handler.batch_size and not jobs.awake:
        wake.wake([handler.name])
    tally: Counter[str] = Counter()
    unsettled: list[Verdict] = []
    since = time.monotonic()
    with heartbeat(jobs):
        try:
            for verdict in run(handler, jobs, until):
                report.report(verdict)
                unsettled.append(verdict)
                if time.monotonic() - since >= SETTLE_SECONDS:
                    settled, unsettled = unsettled, []
                    tally += _settle(settled)
                    since = time.monotonic()
        finally:  # also when this process is told to exit: those effects are done
            tally += _settle(unsettled)
    return tally


def _settle(verdicts: Sequence[Verdict]) -> Counter[str]:
    settled = settle(verdicts)
    return Counter(settled.values())
