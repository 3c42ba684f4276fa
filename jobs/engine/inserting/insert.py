"""Create jobs, for fan-out, enqueue, schedules and the sweeper, and merge those of a unique key.

A job whose unique key an unstarted job has is merged into that one. What its publisher changed must
be worked on, so it holds: a worker that begins the other job does so after the publisher's commit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from tailrace.db import locks, prepared
from tailrace.db.arrays import arrays
from tailrace.jobs import registry
from tailrace.jobs.engine import dependents, wake
from tailrace.jobs.engine.inserting import merge_count, search_values
from tailrace.jobs.engine.inserting.insert_sql import (
    INSERT,
    INSERT_NEW,
    INSERT_WITH_KEY,
    INSERT_WITH_KEYS,
    LOCK,
    REPLACE,
)
from tailrace.jobs.engine.inserting.owed import owed_already
from tailrace.jobs.states import State

KEY_LIMIT = 600
"""Characters of a routing key, a lane or a unique key; an index entry cannot be much longer."""
ROUNDS = 20
"""How often a job is inserted again because the one with its key began meanwhile."""
KEYS_NAMED = 3
"""Unique keys that an error names."""


class InvalidJob(ValueError):
    """The job's arguments are invalid; no job was created."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to insert; `delay` in seconds, `payload` JSON text. InvalidJob if a key is too long."""

    handler: str
    event_id: int | None = None
    routing_key: str = ""
    payload: str | None = None
    state: str = State.PENDING.value
    priority: int = 1
    lane: str = ""
    due_at: datetime | None = None
    delay: float = 0.0
    after_id: int | None = None
    unique_key: str | None = None
    schedule_id: int | None = None
    slot: datetime | None = None
    error: str = ""
    """The reason why the job is `failed` or `skipped` from the start; empty for all others."""

    def __post_init__(self) -> None:
        for name in ("routing_key", "lane", "unique_key"):
            if (length := len(getattr(self, name) or "")) > KEY_LIMIT:
                raise InvalidJob(
                    f"{self.handler}: {name} has {length} characters, {KEY_LIMIT} at most"
                )


_COLUMNS = tuple(field.name for field in fields(NewJob))
_NUMBERS = {"event_id", "priority", "delay", "after_id", "schedule_id"}


@dataclass(slots=True)
class Inserted:
    """What became of the jobs of one call."""

    ids: list[int] = field(default_factory=list)
    """The new jobs."""
    merged: dict[int, int] = field(default_factory=dict)
    """By place in the call: the job that this one was merged into. What is neither new nor merged
    is the job of an event that has one for this handler and routing key."""


def insert_jobs(jobs: Sequence[NewJob], *, of_new_events: bool = False) -> Inserted:
    """Insert these jobs in one statement, or merge them into the unstarted job of their key.

    `of_new_events`: their events were recorded in this transaction, and none has its jobs yet.
    A job of an event that is merged leaves a row, `skipped` with the reason, so that each event has
    a row for each job that was owed because of it. Raises `locks.Blocked` when another transaction
    holds a unique key for too long. Wakes no queue, except for merged jobs that are due.
    """
    if not jobs:
        return Inserted()
    if of_new_events or all(job.event_id is None for job in jobs):
        return _insert(jobs, new=True)
    owed = owed_already([(job.event_id, job.handler, job.routing_key) for job in jobs])
    places = [place for place in range(len(jobs)) if place not in owed]
    inserted = _insert([jobs[place] for place in places], new=False)
    inserted.merged = {places[place]: into for place, into in inserted.merged.items()}
    return inserted


def _insert(jobs: Sequence[NewJob], *, new: bool) -> Inserted:
    """`new`: none of them is the job of an event that may have it."""
    if not jobs:
        return Inserted()
    keyed = [place for place, job in enumerate(jobs) if job.unique_key is not None]
    if not keyed:
        rows = prepared.query(INSERT_NEW if new else INSERT, **_arrays(jobs))
        inserted = Inserted(ids=[id for (id,) in rows])
    elif len(keyed) == 1 and not _replaces(jobs[keyed[0]].handler):
        inserted = _insert_one_key(jobs, keyed[0])
    else:
        inserted = _insert_or_merge(jobs, list(range(len(jobs))))
    search_values.of_jobs({job.handler for job in jobs if job.payload}, inserted.ids)
    dependents.release_on_commit(
        {job.after_id for job in jobs if job.after_id and job.state == State.WAITING}
    )
    return inserted


def is_one_statement(jobs: Sequence[NewJob]) -> bool:
    """Whether these jobs are whole or not at all without a transaction around `insert_jobs`."""
    if any(job.event_id is not None for job in jobs):
        return False
    if any(job.payload and search_values.declared_by(job.handler) for job in jobs):
        return False
    if all(job.unique_key is None for job in jobs):
        return True
    [job, *others] = jobs
    return not others and not _replaces(job.handler)


def _arrays(jobs: Sequence[NewJob]) -> dict[str, Any]:
    return arrays(jobs, _COLUMNS, _NUMBERS)


def _query(statement: str, jobs: Sequence[NewJob], **params: Any) -> list[tuple[Any, ...]]:
    """Execute a statement that may wait for the unique keys of these jobs."""
    with locks.named(lambda: _keys_in_words(jobs)):
        return prepared.query(statement, **_arrays(jobs), **params, **locks.params())


def _keys_in_words(jobs: Sequence[NewJob]) -> str:
    keys = sorted({(job.handler, job.unique_key) for job in jobs if job.unique_key is not None})
    named = ", ".join(f"{key!r} of {handler}" for handler, key in keys[:KEYS_NAMED])
    more = f" or {len(keys) - KEYS_NAMED} more" if len(keys) > KEYS_NAMED else ""
    return f"the unique key {named}{more}"


def _insert_one_key(jobs: Sequence[NewJob], place: int) -> Inserted:
    """Insert jobs of which only the one at this place has a unique key, or merge it."""
    keyed = jobs[place]
    rows = _query(INSERT_WITH_KEY, jobs, key_of=keyed.handler, key=keyed.unique_key)
    _id, _key, target, waits_for, due = rows[0]
    has_row = any(key is not None for _id, key, *_ in rows)
    if target is None:
        inserted = Inserted([id for id, *_ in rows if id is not None])
        if not has_row:  # its event has it, or the job with the key was not there yet
            again = _insert_or_merge(jobs, [place])
            inserted.ids += again.ids
            inserted.merged = again.merged
        return inserted
    merges = _Merges()
    merges.release(keyed, waits_for, due)
    if has_row or keyed.event_id is None:
        merges.into[place] = target
        merges.counted.append(target)
    merges.finish()
    return Inserted([id for id, key, *_ in rows if id is not None and key is None], merges.into)


def _insert_or_merge(jobs: Sequence[NewJob], places: list[int]) -> Inserted:
    """Insert the jobs at these places; lock what could not be inserted; insert again where nothing
    was left to lock."""
    ids: dict[int, int] = {}
    merges = _Merges()
    for _round in range(ROUNDS):
        rows = _query(INSERT_WITH_KEYS, [jobs[place] for place in places])
        ids |= {places[row]: id for row, id in rows if id is not None}
        places = [
            place for place in places if place not in ids and jobs[place].unique_key is not None
        ]
        if places:
            places = merges.take(jobs, places)
        if not places:
            merges.finish()
            return Inserted([ids[place] for place in sorted(ids)], merges.into)
    raise locks.Blocked(
        f"each job with it began before another could be merged into it, {ROUNDS} times in a row: "
        f"{_keys_in_words([jobs[place] for place in places])}; try again later"
    )


class _Merges:
    """The merges of one call."""

    def __init__(self) -> None:
        self.into: dict[int, int] = {}
        self.counted: list[int] = []
        self.due: set[str] = set()
        self.parents: set[int] = set()
        self.rows: list[NewJob] = []
        """A row for each event whose job was merged."""

    def take(self, jobs: Sequence[NewJob], places: list[int]) -> list[int]:
        """Merge the jobs at these places; return the places whose unstarted job began."""
        left: list[int] = []
        for replaces in (False, True):
            some = [place for place in places if _replaces(jobs[place].handler) is replaces]
            if some:
                merge = self._replace if replaces else self._keep
                left += merge(jobs, some)
        return sorted(left)

    def _keep(self, jobs: Sequence[NewJob], places: list[int]) -> Iterable[int]:
        rows = _query(LOCK, [jobs[place] for place in places])
        for row, owed, target, waits_for, due in rows:
            job = jobs[places[row]]
            if target is None and not owed:
                yield places[row]
            elif not owed:
                self._add(places[row], job, target, waits_for, due)
                self.counted.append(target)
                self._record(job, target)

    def _replace(self, jobs: Sequence[NewJob], places: list[int]) -> Iterable[int]:
        rows = _query(REPLACE, [jobs[place] for place in places])
        for row, owed, target, waits_for, due, newest, *was in rows:
            job = jobs[places[row]]
            if target is None and not owed:
                yield places[row]
            elif not owed:
                self._add(places[row], job, target, waits_for, due)
                if newest:
                    event_id, routing_key, payload, lane, priority = was
                    job = replace(
                        job, event_id=event_id, routing_key=routing_key, payload=payload,
                        lane=lane, priority=priority,
                    )  # fmt: skip
                self._record(job, target)

    def _add(self, place: int, job: NewJob, target: int, waits_for: int | None, due: bool) -> None:
        self.into[place] = target
        self.release(job, waits_for, due)

    def release(self, job: NewJob, waits_for: int | None, due: bool) -> None:
        """After the commit, repeat what passed the locked job over: a claim, or a release."""
        if waits_for is not None:
            self.parents.add(waits_for)
        if due:
            self.due.add(job.handler)

    def _record(self, job: NewJob, target: int) -> None:
        if job.event_id is not None:
            self.rows.append(
                replace(
                    job, state=State.SKIPPED.value, error=f"merged into job {target}",
                    due_at=None, delay=0.0, after_id=None,
                )
            )  # fmt: skip

    def finish(self) -> None:
        """Write the rows of the events, and do the rest after the commit."""
        if self.rows:
            prepared.query(INSERT, **_arrays(self.rows))
        merge_count.add_on_commit(self.counted)
        dependents.release_on_commit(self.parents)
        wake.on_commit(self.due)


def _replaces(name: str) -> bool:
    handler = registry.find(name)
    return handler is not None and handler.merge == "replace"
