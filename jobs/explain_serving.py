"""Who would claim a pending job: workers that listen, the tick, the wake-up, the broker."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery import current_app
from kombu import Queue as KombuQueue

from events import clock
from jobs import numbers, registry, tick
from jobs.explain_words import Reason, when
from jobs.models import Queue

BROKER_SECONDS = 0.5
"""For each of the client's steps; a broker that is away costs four of them at most."""
HEARD_SECONDS = 30
"""A worker that was not heard of for longer does not count."""
TICK_LATE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Broker:
    """What the broker says of a queue."""

    error: str = ""
    """Why it could not be asked; empty if it answered."""
    messages: int | None = None
    """Wake-ups that no worker has fetched yet; None if unknown."""


def reasons(queue: Queue, ready: bool) -> list[Reason]:
    """Return what keeps workers from claiming, and, for a ready job, where the wake-up is."""
    broker = ask_broker(queue.name)
    found = [_worker(queue.name), _tick(), _broker(broker), _retired(queue)]
    if ready:
        found.append(_wake_up(queue, broker))
    return [reason for reason in found if reason is not None]


def _worker(name: str) -> Reason | None:
    alive = numbers.workers(HEARD_SECONDS)
    if any(name in worker["queues"] for worker in alive):
        return None
    others = f"{len(alive)} were heard of" if alive else "none at all was heard of"
    words = f"No worker listens on {name}: {others} in the last {HEARD_SECONDS} s."
    return Reason("no_worker", words)


def _tick() -> Reason | None:
    age = numbers.beat_age()
    if age is not None and age <= TICK_LATE_SECONDS:
        return None
    last = "has never run" if age is None else f"ran {age:.0f} s ago"
    words = f"The tick {last}: beat, or a worker on jobs.tick, is away. Lost wake-ups stay lost."
    return Reason("no_tick", words)


def _broker(broker: Broker) -> Reason | None:
    if not broker.error:
        return None
    words = f"The broker does not answer ({broker.error}), so wake-ups cannot be sent or fetched."
    return Reason("broker_away", words)


def _retired(queue: Queue) -> Reason | None:
    if queue.retired_at is None or registry.find(queue.name) is None:
        return None
    words = (
        f"The queue is retired since {when(queue.retired_at)}: the code that migrated last has no "
        "such handler, and the tick wakes it no more. `manage.py migrate` with this code brings "
        "it back."
    )
    return Reason("queue_retired", words)


def _wake_up(queue: Queue, broker: Broker) -> Reason:
    drained = queue.drained_at
    last = f"the last drain began {when(drained)}" if drained else "no drain has ever begun"
    if not queue.awake or queue.awake_at is None:
        words = f"No wake-up is out; {last}. It claims until nothing is left, or the tick sends one"
        return Reason("asleep", f"{words} within a second or two.")
    again = queue.awake_at + timedelta(seconds=min(tick.RESEND_SECONDS * 2**queue.resends, 60))
    where = ""
    if broker.messages:
        where = " It lies at the broker: every worker that listens is busy, or none does."
    elif broker.messages == 0:
        where = " A worker fetched it and is still busy with another queue, or it was lost."
    words = f"A wake-up is out since {when(queue.awake_at)}, and {last}.{where}"
    then = "sends another" if again > clock.now() else "was to send another"
    return Reason("awake", f"{words} The tick {then} {when(again)}.")


def ask_broker(name: str) -> Broker:
    """Ask the broker, for two seconds at most, whether it is there and what it holds."""
    patience: dict[str, float] = {
        "socket_timeout": BROKER_SECONDS,
        "socket_connect_timeout": BROKER_SECONDS,
    }
    patience |= {"read_timeout": BROKER_SECONDS, "write_timeout": BROKER_SECONDS}
    try:
        link = current_app.connection_for_read(
            connect_timeout=BROKER_SECONDS, transport_options=patience
        )
        with link:
            link.ensure_connection(max_retries=1, interval_start=0)  # else it sleeps before it
            with link.channel() as channel:
                queue = current_app.amqp.queues.get(name) or KombuQueue(name)
                return Broker(messages=_messages(queue(channel), link))
    except Exception as error:
        # Each client library has errors of its own; any of them means that it cannot be asked.
        return Broker(error=type(error.__cause__ or error).__name__)


def _messages(queue: KombuQueue, link: Any) -> int | None:
    try:
        declared: Any = queue.queue_declare(passive=True)
        return int(declared.message_count)
    except link.channel_errors:  # nothing was ever sent to it
        return 0
