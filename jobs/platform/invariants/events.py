"""Events: each has the jobs that its handlers create for it.

Events older than their handler get their jobs by backfill. To find lost jobs, `fan_out.jobs_for`
returns the jobs that the handlers would create today. A job counts as missing only if it must have
been created at publish, too:
- the handler existed and handled such events: an older event of that type in the window has a job
  of the handler (with the same routing key, if it has several), or the handler's backfill has
  passed the event;
- the jobs do not depend on the database, which may have changed since;
- the job cannot have been pruned, or merged into another job by a unique key.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connections

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.environment.conf import conf
from tailrace.events.publish import RECORDED, Recorded
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.fan_out import jobs_for
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.engine.maintenance import backfill
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import bounded_query
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import Handler
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.jobs.runtime.states import State

BATCH = 2000
SETTLING_SECONDS = 60
"""Younger events are not checked yet."""

_JOBS = """(SELECT coalesce(array_agg(ARRAY[j.handler, j.routing_key]), '{}')
  FROM tailrace_jobs_job j
  WHERE j.event_id = e.id)"""
_EVENTS = f"""
SELECT {RECORDED}, {_JOBS}
FROM tailrace_events_event e WHERE e.id < %(below)s ORDER BY e.id DESC LIMIT {BATCH}
"""
_SECONDS_AGO = f"SELECT {clock.NOW} - make_interval(secs => %(seconds)s)"

MissingJob = tuple[int, str, str]
"""Event, handler and routing key of a missing job."""


class EventsHaveTheirJobs(Invariant):
    """An event within a handler's backfill window has its jobs of the handler.

    Violations are the names of handlers whose next events lack a job.
    """

    name = "jobs.events_have_their_jobs"
    advice = "the jobs are created as by publish, and their queues are woken"

    def find(self) -> list[str]:
        return backfill.handlers_behind()

    def repair(self, violations: Sequence[str]) -> int:
        return sum(backfill.advance(name) for name in violations)


class EventHasJobs(Invariant):
    """An event has the jobs that its handlers create for it."""

    name = "events.jobs_missing"
    every = None
    limit = 10_000
    in_batches = True
    advice = "the jobs are created as by publish, and their queues are woken"
    since: float = 86_400
    """Events older than this many seconds are not checked."""

    def find(self) -> Iterable[MissingJob]:
        return _Window(self.since, self.limit).missing_jobs()

    def confirm(self, violations: Sequence[MissingJob]) -> list[MissingJob]:
        jobs = _existing_jobs({event for event, _handler, _routing_key in violations})
        return [job for job in violations if job[0] in jobs and job[1:] not in jobs[job[0]]]

    def repair(self, violations: Sequence[MissingJob]) -> int:
        missing = set(violations)
        ids = sorted({event for event, _handler, _routing_key in missing})
        sql = f"SELECT {RECORDED} FROM tailrace_events_event e WHERE e.id = ANY(%(ids)s)"
        jobs = [
            job
            for row in query(sql, ids=ids)
            for job in jobs_for(Recorded.from_row(row))
            if (job.event_id, job.handler, job.routing_key) in missing
        ]
        created = insert_jobs(jobs)
        wake.on_commit({job.handler for job in jobs if job.delay <= 0})
        return len(created.ids)


def _existing_jobs(ids: set[int]) -> dict[int, set[tuple[str, str]]]:
    """Return the (handler, routing key) of all jobs of these events, by id of existing events."""
    sql = f"SELECT e.id, {_JOBS} FROM tailrace_events_event e WHERE e.id = ANY(%(ids)s)"
    rows = bounded_query(sql, ids=list(ids))
    return {id: {(handler, routing_key) for handler, routing_key in jobs} for id, jobs in rows}


class _Window:
    """The events that can be checked, read from the newest to the oldest."""

    def __init__(self, since: float, limit: int) -> None:
        self.limit = limit
        days = min(conf.JOBS_RETENTION_DAYS, conf.JOBS_FAILED_RETENTION_DAYS)
        # One day less than the retention, so that no job of the window is pruned before it is read.
        seconds = min(since, max(days - 1, 0) * 86_400.0 or days * 43_200.0)
        self.oldest = bounded_query(_SECONDS_AGO, seconds=seconds)[0][0]
        self.newest = bounded_query(_SECONDS_AGO, seconds=SETTLING_SECONDS)[0][0]
        sql = "SELECT name, backfilled_to FROM tailrace_jobs_queue WHERE backfilled_to IS NOT NULL"
        self.backfilled = dict(bounded_query(sql))
        self.suspects: dict[tuple[str, str, str | None], list[MissingJob]] = defaultdict(list)
        """Possibly missing jobs by (event type, handler, routing key or None for any): they count
        as missing when an older event of that type has a job of that handler and key."""

    def missing_jobs(self) -> Iterator[MissingJob]:
        below = 2**62
        while batch := bounded_query(_EVENTS, below=below):
            for *row, pairs in batch:
                event, jobs = Recorded.from_row(row), {(name, key) for name, key in pairs}
                if event.recorded_at < self.oldest:
                    return
                yield from self._confirmed_by(event, jobs)
                if event.recorded_at < self.newest:
                    yield from self._check(event, jobs)
            below = batch[-1][0]

    def _confirmed_by(self, event: Recorded, jobs: set[tuple[str, str]]) -> Iterator[MissingJob]:
        for handler, routing_key in jobs:
            yield from self.suspects.pop((event.type, handler, routing_key), ())
            yield from self.suspects.pop((event.type, handler, None), ())

    def _check(self, event: Recorded, jobs: set[tuple[str, str]]) -> Iterator[MissingJob]:
        for handler in registry.handlers_for(event.type):
            routing_keys = {key for name, key in jobs if name == handler.name}
            for job in _jobs_without_database(handler, event):
                if job.routing_key in routing_keys:
                    continue
                missing = (event.id, handler.name, job.routing_key)
                if not routing_keys and self._backfill_has_passed(handler, event):
                    yield missing
                    continue
                needed_key = job.routing_key if routing_keys else None
                suspects = self.suspects[event.type, handler.name, needed_key]
                if len(suspects) < self.limit:
                    suspects.append(missing)

    def _backfill_has_passed(self, handler: Handler, event: Recorded) -> bool:
        return handler.backfill is not None and event.id <= self.backfilled.get(handler.name, 0)


def _jobs_without_database(handler: Handler, event: Recorded) -> list[NewJob]:
    """Return the handler's jobs for the event; none if the handler needed a query to decide."""
    statements: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connections[home()].execute_wrapper(record):
        jobs = jobs_for(event, [handler])
    if statements:
        return []
    return [job for job in jobs if job.unique_key is None and job.state == State.PENDING.value]
