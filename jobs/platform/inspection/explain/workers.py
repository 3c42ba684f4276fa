"""Reasons why workers claim no pending jobs: missing workers, tick, broker or wake-up."""

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any

from celery import current_app
from kombu import Queue as KombuQueue

from tailrace.db import clock
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Queue, QueueActivity
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain.reasons import Reason
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.verdict.cause import Facts

BROKER_SECONDS = 0.5
"""Timeout of each step of the client; an unreachable broker takes at most four of them."""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """Whether the broker answers, and how many wake-ups it has for a queue."""

    error: str = ""
    """The error if it did not answer, else empty."""
    messages: int | None = None
    """Wake-ups that no worker has received yet; None if unknown."""


def reasons(queue: Queue, ready: bool) -> list[Reason]:
    """Return why workers claim no jobs of the queue and, for a ready job, where its wake-up is."""
    handler = registry.find(queue.name)
    served = queue.name if handler is None else handler.worker_queue or queue.name
    broker = broker_status(served)
    full = _pool_full(queue.name)
    reasons = [_no_worker(served), full, _no_tick(), _broker_away(broker), _retired(queue)]
    if ready:
        reasons.append(_wake_up(queue, broker, busy=full is not None))
    return [reason for reason in reasons if reason is not None]


def _no_worker(name: str) -> Reason | None:
    workers = stats.workers()
    if any(name in worker.queues for worker in workers):
        return None
    count = f"workers seen in the last {stats.WORKER_SECONDS} s: {len(workers)}"
    return Reason("no_worker", f"No worker serves {name}; {count}.")


def _pool_full(name: str) -> Reason | None:
    serving = Facts().behind_full_pools.get(name)
    if not serving:
        return None
    processes = sum(pool.worker.concurrency for pool in serving)
    jobs = [job for pool in serving for job in pool.jobs if job.occupies]
    jobs.sort(key=attrgetter("since"))
    first = ", ".join(f"job {job.id} of {job.handler} {when(job.since)}" for job in jobs[:3])
    words = f"All {processes:,} processes of its workers are busy; they claimed {first}."
    if processes == 1:
        words = f"The only process of its worker is busy; it claimed {first}."
    return Reason("pool_full", words, tuple(job.id for job in jobs[:3]))


def _no_tick() -> Reason | None:
    tick = stats.last_tick()
    if not tick.late:
        return None
    last = "has never run" if tick.age is None else f"last ran {tick.age:.0f} s ago"
    words = f"The tick {last}: start a worker or celery beat; both of them run the tick."
    return Reason("no_tick", f"{words} Until the tick runs, lost wake-ups are not sent again.")


def _broker_away(broker: BrokerStatus) -> Reason | None:
    if not broker.error:
        return None
    words = f"The broker does not answer ({broker.error}), so wake-ups cannot be sent or received."
    return Reason("broker_away", words)


def _retired(queue: Queue) -> Reason | None:
    if queue.retired_at is None or registry.find(queue.name) is None:
        return None
    words = (
        f"The queue has been retired since {when(queue.retired_at)}: the code that migrated last "
        "does not have its handler, so the tick sends no wake-ups. `manage.py migrate` with this "
        "code restores the queue."
    )
    return Reason("queue_retired", words)


def _wake_up(queue: Queue, broker: BrokerStatus, busy: bool) -> Reason:
    activity = QueueActivity.objects.filter(name=queue.name).first() or QueueActivity()
    last_drain = f"the last drain started {when(activity.drained_at)}"
    if activity.drained_at is None:
        last_drain = "no drain has started yet"
    if not activity.awake or activity.awake_at is None:
        words = (
            f"No wake-up is on its way; {last_drain}. A drain that is still running claims the "
            "job, or the tick sends a wake-up within two seconds."
        )
        return Reason("asleep", words)
    where = ""
    if busy:
        where = " A process receives it as soon as it is free."
    elif broker.messages:
        where = (
            " The wake-up is still at the broker: all workers of the queue are busy, or there are"
            " none."
        )
    elif broker.messages == 0:
        where = " A worker received the wake-up and is busy with another queue, or it was lost."
    words = f"A wake-up was sent {when(activity.awake_at)}, and {last_drain}.{where}"
    wait = min(tick.RESEND_SECONDS * 2**activity.resends, 60)
    again = activity.awake_at + timedelta(seconds=wait)
    then = "sends another" if again > clock.now() else "was due to send another"
    return Reason("awake", f"{words} The tick {then} {when(again)}.")


def broker_status(name: str) -> BrokerStatus:
    """Connect to the broker and count the queue's messages; takes at most two seconds."""
    names = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")
    timeouts = dict.fromkeys(names, BROKER_SECONDS)
    try:
        with current_app.connection_for_read(
            connect_timeout=BROKER_SECONDS, transport_options=timeouts
        ) as link:
            link.ensure_connection(max_retries=1, interval_start=0)  # without a sleep before it
            with link.channel() as channel:
                queue = current_app.amqp.queues.get(name) or KombuQueue(name)
                return BrokerStatus(messages=_messages(queue(channel), link))
    except Exception as error:  # each client library has its own errors
        return BrokerStatus(error=type(error.__cause__ or error).__name__)


def _messages(queue: KombuQueue, link: Any) -> int | None:
    try:
        declared: Any = queue.queue_declare(passive=True)
        return int(declared.message_count)
    except link.channel_errors:  # the queue does not exist: no message was ever sent to it
        return 0
