"""Insert jobs with unique keys, or merge them into the unstarted jobs with these keys.

The unstarted job begins only after the publisher of the merged job has committed, so that it sees
the publisher's changes.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tailrace.db import connections, locks
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.environment.conf import conf
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.inserting.insert_sql import (
    COUNT_MERGED,
    INSERT,
    INSERT_WITH_KEY,
    INSERT_WITH_KEYS,
    LOCK,
    REPLACE,
)
from tailrace.jobs.engine.inserting.new_job import Inserted, NewJob, columns_of
from tailrace.jobs.engine.waking import dependents, wake
from tailrace.jobs.runtime.states import State

ROUNDS = 20
"""How often an insert is repeated because the unstarted job with the unique key has begun."""
KEYS_NAMED = 3
"""Unique keys that are named in an error."""
PACE_SECONDS = 1.0
"""The minimum time between two writes of the counts of a process."""
MAX_UNCOUNTED = 100
"""Locked jobs whose counts are kept for a later write. The counts of more jobs are lost."""

_lock = threading.Lock()
_uncounted: Counter[int] = Counter()
"""Merges into jobs that were locked by another publisher. They are added with the next counts."""


def _query(statement: str, jobs: Sequence[NewJob], **params: Any) -> list[tuple[Any, ...]]:
    """Execute a statement that may wait for the unique keys of these jobs."""
    with locks.named(lambda: _description_of_keys(jobs)):
        return prepared(statement, **columns_of(jobs), **params, **locks.params())


def _description_of_keys(jobs: Sequence[NewJob]) -> str:
    keys = sorted({(job.handler, job.unique_key) for job in jobs if job.unique_key is not None})
    named = ", ".join(f"{key!r} of {handler}" for handler, key in keys[:KEYS_NAMED])
    more = f" or {len(keys) - KEYS_NAMED} more" if len(keys) > KEYS_NAMED else ""
    return f"the unique key {named}{more}"


def insert_with_one_key(jobs: Sequence[NewJob], index: int) -> Inserted:
    """Insert the jobs, or merge the only job with a unique key, which has this index."""
    keyed = jobs[index]
    rows = _query(INSERT_WITH_KEY, jobs, key_of=keyed.handler, key=keyed.unique_key)
    _id, _key, target, waits_for, due = rows[0]
    has_row = any(key is not None for _id, key, *_ in rows)
    if target is None:
        inserted = Inserted([id for id, *_ in rows if id is not None])
        if not has_row:  # its event has the job, or a job with the key was inserted just now
            again = insert_or_merge(jobs, [index])
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


def insert_or_merge(jobs: Sequence[NewJob], indexes: list[int]) -> Inserted:
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


_REPLACED = ("event_id", "routing_key", "payload", "lane", "priority")
"""The last columns of REPLACE."""


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
        """Merge the jobs with these indexes. Return the indexes of the others: the unstarted jobs
        with their keys have begun."""
        unmerged: list[int] = []
        for statement, by_replacing in ((LOCK, False), (REPLACE, True)):
            group = [index for index in indexes if replaces(jobs[index].handler) is by_replacing]
            if group:
                unmerged += self._merge(statement, jobs, group)
        return sorted(unmerged)

    def _merge(self, statement: str, jobs: Sequence[NewJob], indexes: list[int]) -> Iterable[int]:
        rows = _query(statement, [jobs[index] for index in indexes])
        for row, exists, target, waits_for, due, *replaced in rows:
            index, job = indexes[row], jobs[indexes[row]]
            if target is None and not exists:
                yield index
            elif not exists:
                self.into[index] = target
                self.release(job, waits_for, due)
                if statement == LOCK:
                    self.counted.append(target)
                elif replaced[0]:  # the newest: the row of its event gets what was replaced
                    job = replace(job, **dict(zip(_REPLACED, replaced[1:], strict=True)))
                self._record(job, target)

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
        if self.rows:
            prepared(INSERT, **columns_of(self.rows))
        _count_on_commit(self.counted)
        if self.parents:
            dependents.release_on_commit(self.parents)
        wake.on_commit(self.due)


def replaces(name: str) -> bool:
    """Whether a newer job of this handler replaces the unstarted job with its unique key."""
    handler = registry.find(name)
    return handler is not None and handler.merge == "replace"


def _count_on_commit(ids: Sequence[int]) -> None:
    """After the commit, add one to the count of merged jobs for each of these ids; an id may be
    given several times.

    A thread adds up the merges of the process and writes the counts each second, so that publishers
    with the same unique key do not wait for each other. A crash loses unwritten counts. With
    JOBS_WAKE=inline the caller writes them.
    """
    if ids:
        connections.on_commit(_count_soon, ids)


def _count_soon(ids: Sequence[int]) -> None:
    if conf.JOBS_WAKE == "thread":
        counter.request(ids)
    else:
        with _lock:
            merges = Counter(ids) + _uncounted
            _uncounted.clear()
        uncounted = _count(merges)
        with _lock:
            _uncounted.update(uncounted)


def _count(merges: Counter[int]) -> dict[int, int]:
    """Write these counts; return the counts of locked jobs, which are not written, for up to
    MAX_UNCOUNTED jobs."""
    rows = prepared(COUNT_MERGED, ids=number_array(merges), jobs=number_array(merges.values()))
    return {id: merges[id] for (id,) in rows[:MAX_UNCOUNTED]}


def _count_in_turn(merges: Counter[int]) -> None:
    uncounted = _count(merges)
    if not counter.is_flushing():
        counter.request(uncounted)


counter = Coalescer("merge_counter", _count_in_turn, pace=PACE_SECONDS)
"""The thread of this process that writes the counts."""
