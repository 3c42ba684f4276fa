"""Send a message to the workers, after commit, when a queue has work; at most one at a time.

A message holds only the queue's name. A lost, doubled, late or reordered one changes nothing but
latency: the tick finds the queues with due jobs.
"""

import math
import time
from collections.abc import Iterable

import structlog
from celery import current_app
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from kombu.exceptions import OperationalError

from tailrace.db import clock, connections, prepared
from tailrace.jobs.engine import totals
from tailrace.jobs.engine.activity import SLICE, newest, same
from tailrace.jobs.engine.coalesce import Coalescer

log = structlog.get_logger(__name__)

CONFIRM_SECONDS = 3
"""How long to wait for the broker to confirm a message (RabbitMQ; Redis has a setting)."""

LOCKED_PAUSES = (0.05, 0.2)
"""Seconds between the tries to mark a queue whose row is locked: another waker or a drain of the
queue needs it for less."""
UNMARKED_SECONDS = 0.5
"""A process sends at most one message per queue in this time without marking it."""

# A row that another transaction has locked is passed over, so that one lock delays the wake-up of
# no other queue, and the order of the locks does not matter. The flag may be lost in a crash of the
# database, so its commit need not wait for the disk. The last SELECT reads the rows as they were.
# A queue whose row was not created yet is one whose row is locked.
_MARK = f"""
WITH asleep AS MATERIALIZED (
  SELECT q.name, a.slice FROM tailrace_jobs_queue q LEFT JOIN LATERAL {newest("q.name")} a ON true
  WHERE q.name = ANY(%(names)s) AND q.paused_at IS NULL AND a.awake IS NOT TRUE
),
free AS MATERIALIZED (
  SELECT a.name FROM asleep JOIN tailrace_jobs_queueactivity a ON {same("a", "asleep")}
  WHERE NOT a.awake FOR NO KEY UPDATE OF a SKIP LOCKED
),
marked AS (
  UPDATE tailrace_jobs_queueactivity a
  SET awake = true, awake_at = {clock.NOW}, resends = 0, slice = {SLICE}
  FROM asleep
  WHERE {same("a", "asleep")} AND a.name = ANY(ARRAY(SELECT name FROM free))
    AND set_config('synchronous_commit', 'off', true) IS NOT NULL
  RETURNING a.name
)
SELECT name, name = ANY(ARRAY(SELECT name FROM marked)) FROM asleep
"""


def on_commit(names: Iterable[str]) -> None:
    """Wake these queues when the caller's transaction commits (at once outside of one).

    Several calls in one transaction become one wake-up. The waker's thread does it, so that the
    caller need not wait; with JOBS_WAKE=inline the caller does it itself.
    """
    queues = set(names)
    if not queues:
        return
    connection = connections.current()
    for _sids, callback, *_ in connection.run_on_commit:
        if isinstance(callback, _Wake) and _sids == set(connection.savepoint_ids):
            callback.names |= queues
            return
    connection.on_commit(_Wake(queues), robust=True)


class _Wake:
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def __call__(self) -> None:
        soon(self.names)


def soon(names: Iterable[str]) -> None:
    """Wake these queues, without a wait for the broker: see `on_commit`."""
    if settings.JOBS_WAKE == "thread":
        waker.request(names)
    else:
        wake(names)


def wake(names: Iterable[str]) -> list[str]:
    """Send one message for each of these queues that is not awake; return their names.

    Never raises: what cannot be sent now is sent by the tick.
    """
    woken: list[str] = []
    waiting = list(names)
    try:
        for pause in (None, *LOCKED_PAUSES):
            if pause:
                time.sleep(pause)
            marked, locked = _mark(waiting)
            send(marked)
            woken += marked
            waiting = [name for name in locked if _may_send_unmarked(name)]
            if not waiting:
                break
    except (DatabaseError, InterfaceError) as error:
        log.warning("wake.not_marked", queues=sorted(waiting), error=str(error))
        return woken
    send(unmarked(waiting))
    return woken + waiting


def _mark(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Mark queues as awake; return those that were asleep, and those whose rows are locked."""
    rows = prepared.query(_MARK, names=sorted(names))
    return [name for name, marked in rows if marked], [name for name, marked in rows if not marked]


_unmarked_at: dict[str, float] = {}
"""When this process last sent a message for a queue whose row was locked."""


def _may_send_unmarked(name: str) -> bool:
    return time.monotonic() - _unmarked_at.get(name, -math.inf) >= UNMARKED_SECONDS


def unmarked(names: Iterable[str]) -> list[str]:
    """Return which of these queues get a message although someone keeps their rows locked, so that
    their jobs run all the same: those that got none from this process of late."""
    allowed = [name for name in names if _may_send_unmarked(name)]
    if allowed:
        log.warning("wake.queue_row_locked", queues=allowed)
        _unmarked_at.update(dict.fromkeys(allowed, time.monotonic()))
    return allowed


PACE_SECONDS = 0.003
"""The least time between two calls of the waker: a publisher in a loop would else cause one
statement per event, most of which find the queues awake."""
waker = Coalescer("waker", wake, pace=PACE_SECONDS)
"""This process's thread for the wake-ups of `on_commit`."""


def deliver(names: Iterable[str]) -> None:
    """Send one message for each of these queues, which are marked already.

    As in `on_commit`, a thread does it: a broker that does not answer delays nobody.
    """
    if settings.JOBS_WAKE == "thread":
        _sender.request(names)
    else:
        send(names)


def is_sending() -> bool:
    """Whether the messages of an earlier `deliver` are still being sent."""
    return _sender.is_busy()


def send(names: Iterable[str]) -> int:
    """Send one message per queue; return how many were sent. A broker error is only logged."""
    count = 0
    for name in names:
        try:
            _send(name)
            totals.sent(name)
            count += 1
        except Exception as error:
            # kombu's transports raise errors of their own kinds; none may reach a publisher.
            log.warning("wake.not_sent", queue=name, error=f"{type(error).__name__}: {error}")
            break
    return count


_sender = Coalescer("wake_sender", send, pace=PACE_SECONDS, flush_at_exit=False)


def _send(name: str) -> None:
    unconfirmed = None
    with current_app.producer_or_acquire() as producer:
        try:
            current_app.send_task(
                name, queue=name, producer=producer, retry=False, ignore_result=True,
                confirm_timeout=CONFIRM_SECONDS,
            )  # fmt: skip
        except OperationalError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            # If the exception left this block, kombu would close the channel and wait for it.
            producer.connection.collect()
            unconfirmed = error
    if unconfirmed is not None:
        raise unconfirmed
