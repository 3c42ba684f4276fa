"""Wake queues: send a message to the workers after a commit, at most one at a time per queue.

A message holds only the name of the queue. If a message is lost, doubled, late or reordered, only
the latency changes: the tick finds the queues with due jobs.
"""

import math
import time
from collections.abc import Iterable

import structlog
from celery import current_app
from django.db import DatabaseError, InterfaceError
from kombu import Queue as KombuQueue
from kombu.exceptions import OperationalError

from tailrace.db import connections
from tailrace.db.query import prepared
from tailrace.environment.conf import conf
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.waking.activity import MARK

log = structlog.get_logger(__name__)

CONFIRM_SECONDS = 3
"""How long to wait until RabbitMQ confirms a message. (For Redis there is a setting.)"""

LOCKED_PAUSES = (0.05, 0.2)
"""Seconds before the second and the third attempt to mark a queue whose row is locked. Another
waker or a drain of the queue locks it for a shorter time."""
UNMARKED_SECONDS = 0.5
"""In this time a process sends at most one message per queue without marking the queue."""


def on_commit(names: Iterable[str]) -> None:
    """Wake these queues when the caller's transaction commits, or at once if there is none.

    Several calls in one transaction become one wake-up. The messages are sent in the waker's
    thread, or in the caller's thread with JOBS_WAKE=inline.
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
    """Wake these queues now, in the waker's thread: see `on_commit`."""
    if conf.JOBS_WAKE == "thread":
        waker.request(names)
    else:
        wake(names)


def wake(names: Iterable[str]) -> list[str]:
    """Send one message for each of these queues that is not awake; return the queues that got one.
    It never raises: the tick sends messages that cannot be sent now."""
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
    """Mark queues as awake; return (marked, locked): the queues that were asleep and are marked
    now, and the queues whose rows are locked."""
    rows = prepared(MARK, names=sorted(names))
    return [name for name, marked in rows if marked], [name for name, marked in rows if not marked]


_unmarked_at: dict[str, float] = {}
"""When this process last sent a message for a queue whose row was locked."""


def _may_send_unmarked(name: str) -> bool:
    return time.monotonic() - _unmarked_at.get(name, -math.inf) >= UNMARKED_SECONDS


def unmarked(names: Iterable[str]) -> list[str]:
    """Return the queues with locked rows that get a message all the same, so that their jobs run:
    queues to which this process sent no such message in the last UNMARKED_SECONDS."""
    allowed = [name for name in names if _may_send_unmarked(name)]
    if allowed:
        log.warning("wake.queue_row_locked", queues=allowed)
        _unmarked_at.update(dict.fromkeys(allowed, time.monotonic()))
    return allowed


PACE_SECONDS = 0.003
"""The minimum time between two calls of the waker. Without it, a publisher in a loop would cause
one statement per event, and most statements would find the queues awake."""
waker = Coalescer("waker", wake, pace=PACE_SECONDS)
"""The thread of this process for the wake-ups of `on_commit`."""


def deliver(names: Iterable[str]) -> None:
    """Send one message for each of these queues, which are already marked, in a thread, so that the
    caller does not wait for the broker."""
    if conf.JOBS_WAKE == "thread":
        _sender.request(names)
    else:
        send(names)


def is_sending() -> bool:
    """Whether the messages of an earlier `deliver` are still being sent."""
    return _sender.is_busy()


def send(names: Iterable[str]) -> int:
    """Send one message per queue; return the number of sent messages. A broker error ends the
    sending and is only logged."""
    count = 0
    if conf.JOBS_WAKE == "off":
        return count
    for name in names:
        try:
            _send(name)
            totals.sent(name)
            count += 1
        except Exception as error:
            # kombu's transports raise their own error classes; no error may reach a publisher.
            log.warning("wake.not_sent", queue=name, error=f"{type(error).__name__}: {error}")
            break
    return count


_sender = Coalescer("wake_sender", send, pace=PACE_SECONDS, flush_at_exit=False)


def broker_queue(name: str) -> KombuQueue:
    """Return the broker's queue of a handler. Workers and senders must declare the same queue, or
    RabbitMQ refuses one of them."""
    kind = current_app.conf.task_default_queue_type
    arguments = {"x-queue-type": kind} if kind == "quorum" else None
    return KombuQueue(name, routing_key=name, queue_arguments=arguments)


def _send(name: str) -> None:
    unconfirmed = None
    if name not in (queues := current_app.amqp.queues):  # of a process without the tasks
        queues.add(broker_queue(name))
    with current_app.producer_or_acquire() as producer:
        try:
            current_app.send_task(
                name, queue=name, producer=producer, retry=False, ignore_result=True,
                serializer="json", confirm_timeout=CONFIRM_SECONDS,
            )  # fmt: skip
        except OperationalError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            # If the exception left this block, kombu would close the channel and wait for that.
            producer.connection.collect()
            unconfirmed = error
    if unconfirmed is not None:
        raise unconfirmed
