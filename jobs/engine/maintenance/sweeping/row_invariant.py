"""Invariants of single rows: an SQL condition that is true of a wrong row."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from tailrace.db import clock
from tailrace.db.limits import time_limits
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.runtime.invariant import Invariant

BATCH = 5000
"""Rows that one statement of `scan` reads."""
STATEMENT_SECONDS, LOCK_SECONDS = 60, 2

OLD = f"{clock.NOW} - interval '120 seconds'"
"""SQL: states that the tick repairs each second are violations only if they are older than this."""


class RowInvariant(Invariant):
    """An invariant on the rows `r` of one table.

    Conditions can use lists of handler names: %(known)s of all handlers, %(in_lanes)s of handlers
    with lanes. `manage.py fsck` checks all conditions of a table in one pass. If `every` is set,
    the condition must be served by an index.
    """

    every: ClassVar[float | None] = None
    table: ClassVar[str] = "tailrace_jobs_job"
    condition: ClassVar[str] = ""
    """SQL that is true of a wrong row."""
    change: ClassVar[str] = ""
    """SQL after SET in the statement that repairs wrong rows; empty if there is no repair, or
    another one (`repaired_by`, `repair`)."""

    def find(self) -> list[int]:
        sql = f"SELECT r.id FROM {self.table} r WHERE {self.condition} LIMIT %(limit)s"
        return [id for (id,) in query(sql, **handler_names(), limit=self.limit)]

    def confirm(self, violations: Sequence[int]) -> list[int]:
        return [id for _invariant, id in scan([self], list(violations))]

    def repair(self, violations: Sequence[int]) -> int:
        if not self.change:
            return super().repair(violations)
        sql = f"UPDATE {self.table} r SET {self.change} WHERE r.id = ANY(%(ids)s) RETURNING r.id"
        return len(query(sql, ids=self.lock(violations)))

    @property
    def repairs(self) -> bool:
        cls = type(self)
        has_function = cls.repaired_by is not None or cls.repair is not RowInvariant.repair
        return bool(self.change) or has_function

    def lock(self, ids: Sequence[int]) -> list[int]:
        """Lock the rows that are still wrong and return their ids; skip rows that are locked."""
        sql = f"""SELECT r.id FROM {self.table} r WHERE r.id = ANY(%(ids)s) AND ({self.condition})
                  ORDER BY r.id FOR UPDATE OF r SKIP LOCKED"""
        return [id for (id,) in query(sql, **handler_names(), ids=list(ids))]

    def locked_by_others(self, ids: Sequence[int]) -> int:
        """Return how many of these rows are locked by other transactions."""
        return len(ids) - len(self.lock(ids))


def handler_names() -> dict[str, list[str]]:
    """Return the parameters that a condition may use."""
    in_lanes = sync_declared.handlers_with_lanes()
    return {"known": list(registry.all_handlers()), "in_lanes": in_lanes}


def bounded_query(sql: str, **params: Any) -> list[Any]:
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        return query(sql, **handler_names() | params)


def scan(
    invariants: Sequence[RowInvariant], ids: list[int] | None = None
) -> Iterator[tuple[RowInvariant, int]]:
    """Yield (invariant, id) for the wrong rows of the table of these invariants: of the rows `ids`,
    or of the whole table in batches along its primary key."""
    table = invariants[0].table
    conditions = [f"({rule.condition})" for rule in invariants]
    cases = ", ".join(f"CASE WHEN {wrong} THEN {n} END" for n, wrong in enumerate(conditions))
    any_of = " OR ".join(conditions)
    wrong = f"SELECT r.id, array_remove(ARRAY[{cases}], NULL) FROM {table} r WHERE ({any_of})"
    if ids is not None:
        for id, indexes in bounded_query(f"{wrong} AND r.id = ANY(%(ids)s) ORDER BY r.id", ids=ids):
            yield from ((invariants[index], id) for index in indexes)
        return
    start = 0
    while (end := _end_of_batch(table, start)) is not None:
        batch = f"{wrong} AND r.id > %(start)s AND r.id <= %(end)s ORDER BY r.id"
        for id, indexes in bounded_query(batch, start=start, end=end):
            yield from ((invariants[index], id) for index in indexes)
        start = end


def _end_of_batch(table: str, start: int) -> int | None:
    ids = f"SELECT id FROM {table} WHERE id > %(start)s ORDER BY id LIMIT {BATCH}"
    last: int | None = bounded_query(f"SELECT max(id) FROM ({ids}) batch", start=start)[0][0]
    return last
