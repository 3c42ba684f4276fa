"""What keeps workers from claiming pending jobs: missing workers, tick, broker or wake-up."""

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any

from celery import current_app
from kombu import Queue as KombuQueue

from tailrace.db import clock
from tailrace.jobs import registry
from tailrace.jobs.inspection import stats
from tailrace.jobs.inspection.explain.reasons import Reason
from tailrace.jobs.inspection.formatting import when
from tailrace.jobs.inspection.verdict.facts import Facts
from tailrace.jobs.maintenance import tick
from tailrace.jobs.models import Queue, QueueActivity

BROKER_SECONDS = 0.5
"""For each step of the client; a broker that does not answer costs four of them at most."""
WORKER_SECONDS = 30
"""A worker without a heartbeat for longer does not count."""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """Whether the broker answers, and how many wake-ups it holds for a queue."""

    error: str = ""
    """Why it did not answer; empty if it did."""
    messages: int | None = None
    """Wake-ups that no worker has received yet; None if unknown."""


def reasons(queue: Queue, ready: bool) -> list[Reason]:
    """Return what keeps workers from claiming and, for a ready job, where the wake-up is."""
    broker = broker_status(queue.name)
    full = _pool_full(queue.name)
    reasons = [_no_worker(queue.name), full, _no_tick(), _broker_away(broker), _retired(queue)]
    if ready:
        reasons.append(_wake_up(queue, broker, busy=full is not None))
    return [reason for reason in reasons if reason is not None]


def _no_worker(name: str) -> Reason | None:
    workers = stats.workers(WORKER_SECONDS)
    if any(name in worker.queues for worker in workers):
        return None
    count = f"workers seen in the last {WORKER_SECONDS} s: {len(workers)}"
    return Reason("no_worker", f"No worker serves {name}; {count}.")


def _pool_full(name: str) -> Reason | None:
    serving = Facts().behind_full_pools.get(name)
    if not serving:
        return None
    places = sum(pool.worker.concurrency for pool in serving)
    jobs = [job for pool in serving for job in pool.jobs if job.occupies]
    jobs.sort(key=attrgetter("since"))
    first = ", ".join(f"job {job.id} of {job.handler} {when(job.since)}" for job in jobs[:3])
    processes = "The only process" if places == 1 else f"All {places:,} processes"
    words = f"{processes} of its workers are busy; they took {first}."
    if places == 1:
        words = f"{processes} of its worker is busy; it took {first}."
    return Reason("pool_full", words, tuple(job.id for job in jobs[:3]))


def _no_tick() -> Reason | None:
    tick = stats.last_tick()
    if not tick.late:
        return None
    last = "has never run" if tick.age is None else f"last ran {tick.age:.0f} s ago"
    words = f"The tick {last}: start a worker or celery beat, each of which ticks."
    return Reason("no_tick", f"{words} Until it runs, lost wake-ups are not sent again.")


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
        "has no such handler, so the tick does not wake it. `manage.py migrate` with this code "
        "brings it back."
    )
    return Reason("queue_retired", words)


def _wake_up(queue: Queue, broker: BrokerStatus, busy: bool) -> Reason:
    activity = QueueActivity.objects.filter(name=queue.name).first() or QueueActivity()
    last_drain = f"the last drain started {when(activity.drained_at)}"
    if activity.drained_at is None:
        last_drain = "no drain has started yet"
    if not activity.awake or activity.awake_at is None:
        words = (
            f"No wake-up is on its way; {last_drain}. A drain that is still running takes the job, "
            "or the tick sends a wake-up within a second or two."
        )
        return Reason("asleep", words)
    where = ""
    if busy:
        where = " A process takes it when it is free."
    elif broker.messages:
        where = " It is still at the broker: all workers of the queue are busy, or there are none."
    elif broker.messages == 0:
        where = " A worker received it and is busy with another queue, or it was lost."
    words = f"A wake-up was sent {when(activity.awake_at)}, and {last_drain}.{where}"
    again = activity.awake_at + timedelta(
        seconds=min(tick.RESEND_SECONDS * 2**activity.resends, 60)
    )
    then = "sends another" if again > clock.now() else "was due to send another"
    return Reason("awake", f"{words} The tick {then} {when(again)}.")


def broker_status(name: str) -> BrokerStatus:
    """Connect to the broker, for two seconds at most, and count the queue's messages."""
    names = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")
    timeouts = dict.fromkeys(names, BROKER_SECONDS)
    try:
        link = current_app.connection_for_read(
            connect_timeout=BROKER_SECONDS, transport_options=timeouts
        )
        with link:
            link.ensure_connection(max_retries=1, interval_start=0)  # else it sleeps before it
            with link.channel() as channel:
                queue = current_app.amqp.queues.get(name) or KombuQueue(name)
                return BrokerStatus(messages=_messages(queue(channel), link))
    except Exception as error:  # each client library has its own errors
        return BrokerStatus(error=type(error.__cause__ or error).__name__)


def _messages(queue: KombuQueue, link: Any) -> int | None:
    try:
        declared: Any = queue.queue_declare(passive=True)
        return int(declared.message_count)
    except link.channel_errors:  # nothing was ever sent to it
        return 0
