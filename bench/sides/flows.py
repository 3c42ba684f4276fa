"""Flows, and the same jobs without a flow: enqueue KIND COUNT, which prints the seconds.

KIND: `one flow` (a callback after all other jobs), `callbacks` (flows of nine jobs and a callback),
`callbacks of another queue` (the same, with another handler), `chains` (flows of ten jobs, one
after the other); each also with ` without`.
"""

import sys
import time
from collections.abc import Callable

import django

SIZE = 10
"""Jobs of each of many flows."""
JOB, OTHER = "bench.effect_a", "bench.effect_b"


def callback_after(jobs: int, callback: str = JOB) -> None:
    """Enqueue a flow of so many jobs, and a callback that runs after them."""
    from tailrace.jobs.flows import NewFlow

    flow = NewFlow("bench")
    flow.add(callback, after=flow.group(JOB, [None] * jobs))
    flow.enqueue()


def chain_of(jobs: int) -> None:
    from tailrace.jobs.flows import NewFlow

    flow = NewFlow("bench")
    flow.chain([JOB] * jobs)
    flow.enqueue()


def without(jobs: int, others: int = 0) -> None:
    """Enqueue so many jobs, and so many of another queue, in one transaction."""
    from django.db import transaction

    from tailrace.jobs.enqueue import enqueue_many

    with transaction.atomic():
        enqueue_many(JOB, [{}] * jobs)
        if others:
            enqueue_many(OTHER, [{}] * others)


KINDS: dict[str, Callable[[int], None]] = {
    "one flow": lambda count: callback_after(count - 1),
    "one flow without": lambda count: without(count),
    "callbacks": lambda count: _each(count, lambda: callback_after(SIZE - 1)),
    "callbacks without": lambda count: _each(count, lambda: without(SIZE)),
    "callbacks of another queue": lambda count: _each(
        count, lambda: callback_after(SIZE - 1, OTHER)
    ),
    "callbacks of another queue without": lambda count: _each(count, lambda: without(SIZE - 1, 1)),
    "chains": lambda count: _each(count, lambda: chain_of(SIZE)),
    "chains without": lambda count: _each(count, lambda: without(SIZE)),
}
"""What enqueues so many jobs in all."""


def _each(count: int, enqueue: Callable[[], None]) -> None:
    for _ in range(count // SIZE):
        enqueue()


if __name__ == "__main__":
    django.setup()
    _enqueue, kind, count = sys.argv[1:]
    began = time.perf_counter()
    KINDS[kind](int(count))
    print(time.perf_counter() - began)
