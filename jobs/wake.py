"""wake: tell the workers, after commit, that a queue has work; at most one message outstanding.

A message holds nothing but the queue's name. Losing, doubling, delaying or reordering one changes
latency and nothing else: the tick finds what is due and not served.
"""

from collections.abc import Iterable

import structlog
from celery import current_app
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from kombu.exceptions import OperationalError

from events import clock
from events.hot import hot_cursor
from jobs.waker import Waker

log = structlog.get_logger(__name__)

CONFIRM_SECONDS = 3
"""How long a broker that takes a message may be silent about it (RabbitMQ; Redis has a setting)."""

# Rows are locked in the order of their names, so that two wakers cannot deadlock. The flag may be
# lost in a crash of the database, so its commit need not wait for the disk.
_MARK = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
asleep AS (
  SELECT name FROM jobs_queue, quick
  WHERE name = ANY(%(names)s) AND NOT awake AND paused_at IS NULL
  ORDER BY name FOR NO KEY UPDATE OF jobs_queue
)
UPDATE jobs_queue q SET awake = true, awake_at = {clock.NOW}, resends = 0
FROM asleep WHERE q.name = asleep.name RETURNING q.name
"""


def on_commit(names: Iterable[str]) -> None:
    """Wake these queues when the caller's transaction commits (at once outside of one).

    Several calls in one transaction become one wake-up. The waker's thread does it, so that the
    caller goes on; with JOBS_WAKE=inline the caller does it itself.
    """
    wanted = set(names)
    if not wanted:
        return
    for _sids, callback, *_ in connection.run_on_commit:
        if isinstance(callback, _Wake) and _sids == set(connection.savepoint_ids):
            callback.names |= wanted
            return
    transaction.on_commit(_Wake(wanted), robust=True)


class _Wake:
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def __call__(self) -> None:
        if settings.JOBS_WAKE == "thread":
            waker.ask(self.names)
        else:
            wake(self.names)


def wake(names: Iterable[str]) -> list[str]:
    """Send one message for each of these queues that is not awake; return their names.

    Never raises: what cannot be sent now is sent by the tick.
    """
    try:
        with hot_cursor() as cursor:
            cursor.execute(_MARK, clock.params() | {"names": sorted(names)})
            marked = [row[0] for row in cursor.fetchall()]
    except (DatabaseError, InterfaceError) as error:
        log.warning("wake.not_marked", queues=sorted(names), error=str(error))
        return []
    send(marked)
    return marked


waker = Waker(wake)
"""This process's thread for what `on_commit` is asked for."""


def send(names: Iterable[str]) -> int:
    """Send one message per queue; return how many went out. A broker error is logged, no more."""
    sent = 0
    for name in names:
        try:
            _send(name)
            sent += 1
        except Exception as error:
            # kombu's transports raise errors of their own kinds; none may reach a publisher.
            log.warning("wake.not_sent", queue=name, error=f"{type(error).__name__}: {error}")
            break
    return sent


def _send(name: str) -> None:
    silent = None
    with current_app.producer_or_acquire() as producer:
        try:
            current_app.send_task(
                name, queue=name, producer=producer, retry=False, ignore_result=True,
                confirm_timeout=CONFIRM_SECONDS,
            )  # fmt: skip
        except OperationalError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            # Left by the exception, kombu would take leave of the broker, and wait for its answer.
            producer.connection.collect()
            silent = error
    if silent is not None:
        raise silent
