"""Insert jobs for fan-out, enqueue, schedules and the sweeper, and merge jobs with the same unique
key.

A job is merged into an unstarted job with the same unique key. The unstarted job begins only after
the publisher of the merged job has committed, so that it sees the publisher's changes.
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
from tailrace.jobs.engine.inserting.owed import existing_jobs
from tailrace.jobs.states import State

KEY_LIMIT = 600
"""Maximum length of a routing key, a lane or a unique key, in characters. The size of index entries
is limited."""
ROUNDS = 20
"""How often an insert is repeated because the unstarted job with the unique key has begun."""
KEYS_NAMED = 3
"""Unique keys that are named in an error."""


class InvalidJob(ValueError):
    """The job's arguments are invalid; no job was created."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to insert. `delay` is in seconds, `payload` is JSON text. Raises InvalidJob if a key is
    too long."""

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
    """The reason if the job is inserted as `failed` or `skipped`; else empty."""

    def __post_init__(self) -> None:
        for name in ("routing_key", "lane", "unique_key"):
            if (length := len(getattr(self, name) or "")) > KEY_LIMIT:
                raise InvalidJob(
                    f"{self.handler}: {name} has {length} characters; at most {KEY_LIMIT} are"
                    " allowed"
                )


_COLUMNS = tuple(field.name for field in fields(NewJob))
_NUMBERS = {"event_id", "priority", "delay", "after_id", "schedule_id"}


@dataclass(slots=True)
class Inserted:
    """The new and the merged jobs of one call. All other jobs of the call exist already: their
    event has a job with the same handler and routing key."""

    ids: list[int] = field(default_factory=list)
    """The ids of the new jobs."""
    merged: dict[int, int] = field(default_factory=dict)
    """For each merged job, by its index in the call: the id of the job that it was merged into."""


def insert_jobs(jobs: Sequence[NewJob], *, of_new_events: bool = False) -> Inserted:
    """Insert these jobs in one statement, or merge them into unstarted jobs with their unique keys.

    `of_new_events`: their events were recorded in this transaction and have no jobs yet. A merged
    job of an event gets a `skipped` row with the reason, so that each event has a row for each of
    its jobs. Raises `locks.Blocked` if another transaction holds a unique key for too long. It
    wakes no queues, except for merged jobs that are due.
    """
    if not jobs:
        return Inserted()
    if of_new_events or all(job.event_id is None for job in jobs):
        return _insert(jobs, new=True)
    existing = existing_jobs([(job.event_id, job.handler, job.routing_key) for job in jobs])
    indexes = [index for index in range(len(jobs)) if index not in existing]
    inserted = _insert([jobs[index] for index in indexes], new=False)
    inserted.merged = {indexes[index]: into for index, into in inserted.merged.items()}
    return inserted


def _insert(jobs: Sequence[NewJob], *, new: bool) -> Inserted:
    """Insert or merge the jobs. `new`: no event can have any of these jobs already."""
    if not jobs:
        return Inserted()
    keyed = [index for index, job in enumerate(jobs) if job.unique_key is not None]
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
    """Whether `insert_jobs` inserts these jobs atomically without a transaction around it."""
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
    with locks.named(lambda: _description_of_keys(jobs)):
        return prepared.query(statement, **_arrays(jobs), **params, **locks.params())


def _description_of_keys(jobs: Sequence[NewJob]) -> str:
    keys = sorted({(job.handler, job.unique_key) for job in jobs if job.unique_key is not None})
    named = ", ".join(f"{key!r} of {handler}" for handler, key in keys[:KEYS_NAMED])
    more = f" or {len(keys) - KEYS_NAMED} more" if len(keys) > KEYS_NAMED else ""
    return f"the unique key {named}{more}"


def _insert_one_key(jobs: Sequence[NewJob], index: int) -> Inserted:
    """Insert the jobs, or merge the only job with a unique key, which has this index."""
    keyed = jobs[index]
    rows = _query(INSERT_WITH_KEY, jobs, key_of=keyed.handler, key=keyed.unique_key)
    _id, _key, target, waits_for, due = rows[0]
    has_row = any(key is not None for _id, key, *_ in rows)
    if target is None:
        inserted = Inserted([id for id, *_ in rows if id is not None])
        if not has_row:  # its event has the job, or a job with the key was inserted just now
            again = _insert_or_merge(jobs, [index])
            inserted.ids += again.ids
            inserted.merged = again.merged
        return inserted
    merges = _Merges()
    merges.release(keyed, waits_for, due)
    if has_row or keyed.event_id is None:
        merges.into[index] = target
        merges.counted.append(target)
    merges.finish()
    return Inserted([id for id, key, *_ in rows if id is not None and key is None], merges.into)


def _insert_or_merge(jobs: Sequence[NewJob], indexes: list[int]) -> Inserted:
    """Insert the jobs with these indexes. Merge a job that cannot be inserted into the unstarted
    job with its key; if that job has begun, insert the job again."""
    ids: dict[int, int] = {}
    merges = _Merges()
    for _round in range(ROUNDS):
        rows = _query(INSERT_WITH_KEYS, [jobs[index] for index in indexes])
        ids |= {indexes[row]: id for row, id in rows if id is not None}
        indexes = [
            index for index in indexes if index not in ids and jobs[index].unique_key is not None
        ]
        if indexes:
            indexes = merges.merge(jobs, indexes)
        if not indexes:
            merges.finish()
            return Inserted([ids[index] for index in sorted(ids)], merges.into)
    raise locks.Blocked(
        f"each job with {_description_of_keys([jobs[index] for index in indexes])} began before"
        f" another could be merged into it, {ROUNDS} times in a row; try again later"
    )


class _Merges:
    """The merges of one call."""

    def __init__(self) -> None:
        self.into: dict[int, int] = {}
        """The ids of the jobs that jobs were merged into, by the index of the merged job."""
        self.counted: list[int] = []
        """The same ids, for the count of merged jobs."""
        self.due: set[str] = set()
        """The queues to wake after the commit."""
        self.parents: set[int] = set()
        """The parents of merged jobs, whose dependent jobs are released after the commit."""
        self.rows: list[NewJob] = []
        """A row for each event whose job was merged."""

    def merge(self, jobs: Sequence[NewJob], indexes: list[int]) -> list[int]:
        """Merge the jobs with these indexes. Return the indexes of jobs that could not be merged,
        because the unstarted job with their key has begun."""
        unmerged: list[int] = []
        for replaces in (False, True):
            group = [index for index in indexes if _replaces(jobs[index].handler) is replaces]
            if group:
                merge = self._replace if replaces else self._keep
                unmerged += merge(jobs, group)
        return sorted(unmerged)

    def _keep(self, jobs: Sequence[NewJob], indexes: list[int]) -> Iterable[int]:
        rows = _query(LOCK, [jobs[index] for index in indexes])
        for row, exists, target, waits_for, due in rows:
            job = jobs[indexes[row]]
            if target is None and not exists:
                yield indexes[row]
            elif not exists:
                self._add(indexes[row], job, target, waits_for, due)
                self.counted.append(target)
                self._record(job, target)

    def _replace(self, jobs: Sequence[NewJob], indexes: list[int]) -> Iterable[int]:
        rows = _query(REPLACE, [jobs[index] for index in indexes])
        for row, exists, target, waits_for, due, newest, *before in rows:
            job = jobs[indexes[row]]
            if target is None and not exists:
                yield indexes[row]
            elif not exists:
                self._add(indexes[row], job, target, waits_for, due)
                if newest:
                    event_id, routing_key, payload, lane, priority = before
                    job = replace(
                        job, event_id=event_id, routing_key=routing_key, payload=payload,
                        lane=lane, priority=priority,
                    )  # fmt: skip
                self._record(job, target)

    def _add(self, index: int, job: NewJob, target: int, waits_for: int | None, due: bool) -> None:
        self.into[index] = target
        self.release(job, waits_for, due)

    def release(self, job: NewJob, waits_for: int | None, due: bool) -> None:
        """After the commit, repeat the claim or the release that passed over the locked job."""
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
        """Write the rows of merged jobs of events, and register the work to do after the commit."""
        if self.rows:
            prepared.query(INSERT, **_arrays(self.rows))
        merge_count.add_on_commit(self.counted)
        dependents.release_on_commit(self.parents)
        wake.on_commit(self.due)


def _replaces(name: str) -> bool:
    handler = registry.find(name)
    return handler is not None and handler.merge == "replace"
