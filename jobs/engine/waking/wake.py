"""Wake queues: send a message to the workers after a commit, at most one at a time per queue.

A message holds only the name of the queue. If a message is lost, doubled, late or reordered, only
the latency changes: the tick finds the queues with due jobs.
"""

import math
import time
from collections.abc import Iterable
from contextvars import ContextVar

import structlog
from celery import current_app, uuid
from django.db import DatabaseError, InterfaceError
from kombu import Queue as KombuQueue
from kombu.exceptions import OperationalError

from tailrace.db import connections
from tailrace.db.query import prepared
from tailrace.environment.conf import conf
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.waking.activity import MARK

log = structlog.get_logger(__name__)

WORK = "tailrace.work"
"""The Celery task of handlers without a queue of their own; its argument is a handler's name."""
CONFIRM_SECONDS = 3
"""How long to wait until RabbitMQ confirms a message. (For Redis there is a setting.)"""
LOCKED_PAUSES = (0.05, 0.2)
"""Seconds before the second and the third attempt to mark a queue whose row is locked. Another
waker or a drain of the queue locks it for a shorter time."""
UNMARKED_SECONDS = 0.5
"""In this time a process sends at most one message per queue without marking the queue."""
claimed_next: ContextVar[str] = ContextVar("claimed_next", default="")
"""The queue from which this thread claims again at once: `on_commit` leaves it out."""


def on_commit(names: Iterable[str]) -> None:
    """Wake these queues after the commit of the caller's transaction, once for several calls;
    without a transaction, at once. The waker's thread sends the messages; with JOBS_WAKE=inline,
    the calling thread does."""
    queues = set(names) - {claimed_next.get()}
    if not queues:
        return
    connection = connections.current()
    for _sids, callback, *_ in connection.run_on_commit:
        if isinstance(callback, _Wake) and _sids == set(connection.savepoint_ids):
            callback.update(queues)
            return
    connection.on_commit(_Wake(queues), robust=True)


class _Wake(set[str]):
    def __call__(self) -> None:
        soon(self)


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
        sender.request(names)
    else:
        send(names)


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


sender = Coalescer("wake_sender", send, pace=PACE_SECONDS, flush_at_exit=False)
"""The thread of this process for the messages of `deliver`."""


def broker_queue(name: str) -> KombuQueue:
    """Return the broker's queue of a handler. Workers and senders must declare the same queue, or
    RabbitMQ refuses one of them."""
    kind = current_app.conf.task_default_queue_type
    arguments = {"x-queue-type": kind} if kind == "quorum" else None
    return KombuQueue(name, routing_key=name, queue_arguments=arguments)


def _address(queue: KombuQueue, broker: str) -> tuple[str, str]:
    """Return the exchange and the routing key for a message to this queue. In Redis, which queues
    an exchange has is data that a flush deletes, and kombu drops messages to an exchange without
    queues and says nothing: so they go to the queue without an exchange."""
    if broker == "redis" and queue.exchange.type != "fanout":
        return "", queue.name
    return queue.exchange.name, queue.routing_key


def _send(name: str) -> None:
    unconfirmed, handler, amqp = None, registry.find(name), current_app.amqp
    task, args, queue = name, [], name
    if handler is not None and handler.worker_queue is not None:
        task, args, queue = WORK, [name], handler.worker_queue
    elif name not in amqp.queues:  # of a process without the tasks
        amqp.queues.add(broker_queue(name))
    to = amqp.queues[queue]
    message = amqp.create_task_message(uuid(), task, args, {}, ignore_result=True)
    with current_app.producer_or_acquire() as producer:
        exchange, routing_key = _address(to, producer.connection.transport.driver_type)
        try:  # without the signals of `send_task`: a project's receivers expect its own tasks
            with producer.connection._reraise_as_library_errors():
                producer.publish(
                    message.body, headers=message.headers, exchange=exchange, declare=[to],
                    routing_key=routing_key, serializer="json", retry=False,
                    confirm_timeout=CONFIRM_SECONDS, **message.properties,
                )  # fmt: skip
        except OperationalError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            # If the exception left this block, kombu would close the channel and wait for that.
            producer.connection.collect()
            unconfirmed = error
    if unconfirmed is not None:
        raise unconfirmed
