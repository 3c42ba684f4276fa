"""Publish at a rate for some seconds: SIDE RATE SECONDS FILE. SIDE: tailrace or celery.

Times of arrival are a Poisson process of a fixed seed. Each line of FILE: event id, the time of
its commit (CLOCK_MONOTONIC, the same for all processes), seconds of the call, of the transaction.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import django

WARM = 20
SEED = 3


def times(rate: float, seconds: float) -> Iterator[float]:
    """When to publish, in seconds from the start."""
    random_ = random.Random(SEED)
    at = random_.expovariate(rate)
    while at < seconds:
        yield at
        at += random_.expovariate(rate)


def tailrace(number: int) -> int:
    """Publish an event with four jobs."""
    from bench.app.event_types import Measured
    from tailrace.events.publish import NewEvent, publish

    return publish(NewEvent(Measured, {"number": number}))[0].id


def celery(number: int) -> int:
    """Record an event by hand, and send four tasks when it is committed."""
    from bench.sides.steady_load.celery_tasks import TASKS
    from tailrace.events.models import Event

    event = Event.objects.create(
        source="celery", source_id=str(number), type="bench.measured", payload={"number": number}
    )
    for task in TASKS:
        task.delay_on_commit(event.pk)  # type: ignore[attr-defined]
    return int(event.pk)


def timed(call: Callable[[int], int], number: int) -> tuple[int, float, float, float]:
    """Call it in a transaction; return event, time of commit, seconds of call and transaction."""
    from django.db import transaction

    committed: list[float] = []
    began = time.monotonic()
    with transaction.atomic():
        # The first of the callbacks after the commit: all others come behind it.
        transaction.on_commit(lambda: committed.append(time.monotonic()))
        inside = time.monotonic()
        event = call(number)
        called = time.monotonic() - inside
    return event, committed[0], called, time.monotonic() - began


def main(side: str, rate: float, seconds: float, file: Path) -> None:
    call = {"tailrace": tailrace, "celery": celery}[side]
    for number in range(WARM):
        timed(call, -number - 1)
        time.sleep(0.05)
    time.sleep(1)
    lines = []
    began = time.monotonic()
    for number, at in enumerate(times(rate, seconds)):
        time.sleep(max(began + at - time.monotonic(), 0))
        lines.append(" ".join(map(str, timed(call, number))) + "\n")
    file.write_text("".join(lines))


if __name__ == "__main__":
    django.setup()
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
