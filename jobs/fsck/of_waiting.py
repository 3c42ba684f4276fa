"""Waiting jobs: each waits for one that exists, is older, and has not finished long ago."""

from collections.abc import Sequence
from typing import Any

from jobs import continuation
from jobs.fsck.kind import OLD, RowKind, Scope, bounded, rows
from jobs.invariants import WaitsForSomething


class WaitsForUnfinished(RowKind):
    """A waiting job waits for a job that is not finished."""

    name = "jobs.waits_for_finished"
    # A scalar, for an index probe each: an EXISTS would be hashed from the whole table.
    condition = f"""r.state = 'waiting' AND (
      SELECT p.state IN ('completed', 'skipped', 'cancelled', 'failed')
        AND coalesce(p.finished_at, '-infinity') < {OLD}
      FROM jobs_job p WHERE p.id = r.after_id)"""
    repairs = True
    advice = "it becomes pending, or is cancelled, by how the other job ended"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            parents = rows("SELECT after_id FROM jobs_job WHERE id = ANY(%(ids)s)", ids=list(keys))
            continuation.release(sorted({parent for (parent,) in parents}))


class WaitsForExisting(RowKind):
    """The job that a waiting job waits for exists."""

    name = "jobs.waits_for_missing"
    condition = """r.state = 'waiting' AND r.after_id IS NOT NULL
      AND (SELECT 1 FROM jobs_job p WHERE p.id = r.after_id) IS NULL"""
    repairs = True
    advice = "it is cancelled: nobody knows how the other job ended"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            WaitsForSomething().repair(list(keys))


class WaitsForOne(RowKind):
    """A waiting job names the job that it waits for."""

    name = "jobs.waits_for_nothing"
    condition = "r.state = 'waiting' AND r.after_id IS NULL"
    advice = "`manage.py jobs cancel ID` ends it; a replay after that makes it pending"


class WaitsForOlder(RowKind):
    """A waiting job waits for an older one: only so nobody waits in a circle."""

    name = "jobs.waits_in_circle"
    condition = "r.state = 'waiting' AND r.after_id >= r.id"
    advice = "`manage.py jobs cancel ID` ends it, and what waits for it"
