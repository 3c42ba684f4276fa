"""One side of `bench.against`: a process of either checkout that reads `name count` from its input
and prints a rate per second. It uses only what both revisions have; modules that were moved are
looked for in both places.
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import django

LANES, BACKLOG = 1_000, 10_000
"""Of the ordered queue, at the beginning of a round."""


def publish(count: int) -> float:
    """One event with four jobs per transaction."""
    from django.db import transaction

    from bench.app.event_types import Measured
    from tailrace.events.publish import NewEvent
    from tailrace.events.publish import publish as record

    began = time.perf_counter()
    for number in range(count):
        with transaction.atomic():
            record(NewEvent(Measured, {"number": number}))
    return count / (time.perf_counter() - began)


def publish_bulk(count: int) -> float:
    """1,000 events with four jobs each per transaction."""
    from bench.app.event_types import Measured
    from tailrace.events.publish import NewEvent
    from tailrace.events.publish import publish as record

    began = time.perf_counter()
    for _ in range(count):
        record([NewEvent(Measured, {"number": number}) for number in range(1000)])
    return count * 1000 / (time.perf_counter() - began)


def enqueue(count: int) -> float:
    """One job without a key per transaction."""
    return _enqueue(count, lambda number: None)


def enqueue_keyed(count: int) -> float:
    """One job with a new unique key per transaction."""
    run = uuid.uuid4().hex
    return _enqueue(count, lambda number: f"{run}-{number}")


def enqueue_merged(count: int) -> float:
    """One job per transaction, all with the unique key of the same unstarted job."""
    _enqueue(1, lambda number: "merged")
    return _enqueue(count, lambda number: "merged")


def _enqueue(count: int, unique_key: Callable[[int], str | None]) -> float:
    from tailrace.jobs.enqueue import enqueue

    began = time.perf_counter()
    for number in range(count):
        enqueue("bench.plain", unique_key=unique_key(number))
    return count / (time.perf_counter() - began)


def drain_batch(count: int) -> float:
    """Claim and settle jobs that do nothing, by 100."""
    return _drain("bench.effect_a", count)


def drain_single(count: int) -> float:
    """Claim and settle jobs that do nothing, one call each."""
    return _drain("bench.plain", count)


def claim_ordered(count: int) -> float:
    """Claim jobs by 10 from 1,000 ordered lanes; how they end is not timed."""
    registry = _module("tailrace.jobs.engine.registry", "tailrace.jobs.registry", "jobs.registry")
    module = _module(
        "tailrace.jobs.engine.claiming.claim", "tailrace.jobs.engine.claim", "jobs.claim"
    )
    handler = registry.get("bench.ordered")
    _fill_lanes(handler.name)
    claimed, seconds = 0, 0.0
    with _engine():
        while claimed < count:
            began = time.perf_counter()
            claimed += len(module.claim(handler, module.Limits(), 10))
            seconds += time.perf_counter() - began
            _execute("UPDATE tailrace_jobs_job SET state = 'completed', finished_at = now(),"
                     " lease_until = NULL WHERE state = 'running'")  # fmt: skip
    return claimed / seconds


def _fill_lanes(name: str) -> None:
    from tailrace.jobs.enqueue import enqueue_many
    from tailrace.jobs.models import Job

    missing = BACKLOG - Job.objects.filter(handler=name, state="pending").count()
    enqueue_many(name, [{"lane": f"lane{number % LANES}"} for number in range(missing)])


def _module(*names: str) -> Any:
    """Return the first of these modules that this revision has."""
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(", ".join(names))


def _engine() -> Any:
    """Return the block in which a drain claims."""
    try:
        from tailrace.db.connections import engine
    except ModuleNotFoundError:
        return nullcontext()
    return engine()


def _execute(statement: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement)


def _drain(name: str, count: int) -> float:
    from tailrace.jobs.enqueue import enqueue_many

    drain = _module("tailrace.jobs.engine.drain", "jobs.drain").drain
    _execute("DELETE FROM tailrace_jobs_job WHERE state = 'pending' AND handler <> 'bench.ordered'")
    enqueue_many(name, [{}] * count)
    began = time.perf_counter()
    done = 0
    while done < count:
        done += drain(name)
    return count / (time.perf_counter() - began)


def main() -> None:
    """Answer until the input ends. What the code prints goes to the errors."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    django.setup()
    for line in sys.stdin:
        name, count = line.split()
        answers.write(json.dumps(globals()[name](int(count))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
