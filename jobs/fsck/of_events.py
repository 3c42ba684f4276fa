"""Events: each has the jobs that its handlers owe it.

Judged by what `fan_out.owed` says today, so only where today's answer was the answer then:
- the handler was there, and wanted such events: an older one of that type in the window has a
  job of it (for a single routing key: a job with that key), or the handler's own backfill has
  passed the event;
- its answer does not come from the database, which may have changed since;
- the job can neither have been merged into another by a unique key, nor be pruned.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from events import clock
from events.publish import RECORDED, Recorded
from jobs import registry, wake
from jobs.backfill import SETTLING_SECONDS
from jobs.fan_out import owed
from jobs.fsck.kind import MOST, Kind, Scope, bounded, rows
from jobs.handler import Handler
from jobs.insert import NewJob, insert_jobs
from jobs.states import State

BATCH = 2000

_EVENTS = f"""
SELECT {RECORDED},
  (SELECT coalesce(array_agg(ARRAY[j.handler, j.routing_key]), '{{}}') FROM jobs_job j
   WHERE j.event_id = e.id)
FROM events_event e WHERE e.id < %(below)s ORDER BY e.id DESC LIMIT {BATCH}
"""
_YOUNG = f"SELECT {clock.NOW} - make_interval(secs => %(seconds)s)"

Key = tuple[int, str, str]
"""The event, the handler and the routing key of a job that is missing."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event of the window, with the (handler, routing key) of its jobs."""

    event: Recorded
    jobs: set[tuple[str, str]]


class EventsHaveTheirJobs(Kind):
    """An event has the jobs that its handlers owe it."""

    name = "events.jobs_missing"
    repairs = True
    advice = "the jobs are made, as at publish, and their queues woken"

    def find(self, scope: Scope) -> Iterator[Any]:
        yield from _Window(scope).walk()

    def again(self, keys: Sequence[Any], scope: Scope) -> list[Any]:
        present = _present({event for event, _handler, _key in keys})
        return [key for key in keys if present.get(key[0]) is not None and _lacks(key, present)]

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        wanted = set(keys)
        events = sorted({event for event, _handler, _key in keys})
        for start in range(0, len(events), BATCH):
            with bounded():
                _make(events[start : start + BATCH], wanted)


def _make(ids: list[int], wanted: set[Key]) -> None:
    found = rows(f"SELECT {RECORDED} FROM events_event e WHERE e.id = ANY(%(ids)s)", ids=ids)
    jobs = [
        job
        for row in found
        for job in owed(Recorded.from_row(row))
        if (job.event_id, job.handler, job.routing_key) in wanted
    ]
    insert_jobs(jobs)
    wake.on_commit({job.handler for job in jobs if job.delay <= 0})


def _present(ids: set[int]) -> dict[int, set[tuple[str, str]]]:
    """Return the (handler, routing key) of the jobs of those of these events that exist."""
    found = rows(
        """SELECT e.id, (SELECT coalesce(array_agg(ARRAY[j.handler, j.routing_key]), '{}')
             FROM jobs_job j WHERE j.event_id = e.id)
           FROM events_event e WHERE e.id = ANY(%(ids)s)""",
        ids=list(ids),
    )
    return {id: {(handler, key) for handler, key in jobs} for id, jobs in found}


def _lacks(key: Key, present: dict[int, set[tuple[str, str]]]) -> bool:
    event, handler, routing_key = key
    return (handler, routing_key) not in present[event]


class _Window:
    """A walk from the newest event that is settled back to the oldest that may be judged."""

    def __init__(self, scope: Scope) -> None:
        days = min(settings.JOBS_RETENTION_DAYS, settings.JOBS_FAILED_RETENTION_DAYS)
        # A day less than a job is kept: none of the window's can be pruned before it is looked at.
        seconds = min(scope.since, max(days - 1, 0) * 86_400.0 or days * 43_200.0)
        self.oldest = rows(_YOUNG, seconds=seconds)[0][0]
        self.newest = rows(_YOUNG, seconds=SETTLING_SECONDS)[0][0]
        self.backfilled = dict(
            rows("SELECT name, backfilled_to FROM jobs_queue WHERE backfilled_to IS NOT NULL")
        )
        self.suspects: dict[tuple[str, str, str | None], list[Key]] = defaultdict(list)
        """By the (type, handler, routing key or None for any) that an older event is to have."""

    def walk(self) -> Iterator[Key]:
        below = 2**62
        while batch := rows(_EVENTS, below=below):
            for *event, jobs in batch:
                seen = _Seen(Recorded.from_row(event), {(name, key) for name, key in jobs})
                if seen.event.recorded_at < self.oldest:
                    return
                yield from self._proved_by(seen)
                if seen.event.recorded_at < self.newest:
                    yield from self._look(seen)
            below = batch[-1][0]

    def _proved_by(self, seen: _Seen) -> Iterator[Key]:
        for name, key in seen.jobs:
            yield from self.suspects.pop((seen.event.type, name, key), ())
            yield from self.suspects.pop((seen.event.type, name, None), ())

    def _look(self, seen: _Seen) -> Iterator[Key]:
        for handler in registry.wanting(seen.event.type):
            keys = {key for name, key in seen.jobs if name == handler.name}
            for job in _surely_owed(handler, seen.event):
                if job.routing_key in keys:
                    continue
                missing = (seen.event.id, handler.name, job.routing_key)
                if not keys and self._passed_by_backfill(handler, seen.event):
                    yield missing
                else:
                    proof = job.routing_key if keys else None
                    unproved = self.suspects[seen.event.type, handler.name, proof]
                    if len(unproved) < MOST:
                        unproved.append(missing)

    def _passed_by_backfill(self, handler: Handler, event: Recorded) -> bool:
        return handler.backfill is not None and event.id <= self.backfilled.get(handler.name, 0)


def _surely_owed(handler: Handler, event: Recorded) -> list[NewJob]:
    """Return what the handler owes, if its answer comes from the event and the code alone."""
    asked: list[str] = []

    def note(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        asked.append(statement)
        return execute(statement, params, many, context)

    with connection.execute_wrapper(note):
        jobs = owed(event, [handler])
    if asked:
        return []
    return [job for job in jobs if job.unique_key is None and job.state == State.PENDING.value]
