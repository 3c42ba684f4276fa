"""What a job can read of the jobs that it waited for."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async

from tailrace.db import connections
from tailrace.db.connections import with_reconnect
from tailrace.db.query import query
from tailrace.db.sql.plans import probe

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Parent:
    """A job that another job waited for, with its state and result at this moment."""

    id: int
    name: str
    """In its flow; the name of its handler if it belongs to none."""
    handler: str
    state: str
    """`deleted` if it was pruned."""
    result: Any
    """What its handler returned: JSON values. None if it returned nothing, or did not complete."""
    error: str
    """Why it is in its state; empty if it is completed."""


# A job without rows waits for at most one parent: see `Dependency`.
EDGES = """
  SELECT parent_id, position FROM tailrace_jobs_dependency WHERE job_id = %(job)s
  UNION ALL
  SELECT after_id, 0 FROM tailrace_jobs_job WHERE id = %(job)s AND after_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_dependency WHERE job_id = %(job)s)"""
_PARENTS = f"""
SELECT edge.position, edge.parent_id, coalesce(p.flow_name, p.handler, ''),
  coalesce(p.handler, ''), coalesce(p.state, 'deleted'), p.result::text, coalesce(p.error, '')
FROM (
  SELECT * FROM ({EDGES}) edge WHERE (position, parent_id) > (%(position)s, %(id)s)
  ORDER BY position, parent_id LIMIT %(limit)s
) edge LEFT JOIN tailrace_jobs_job p ON {probe("p.id", "edge.parent_id")}
ORDER BY edge.position, edge.parent_id
"""
_COUNTS = f"""
SELECT p.state, count(*)
FROM ({EDGES}) edge JOIN tailrace_jobs_job p ON {probe("p.id", "edge.parent_id")}
GROUP BY p.state
"""


class Parents:
    """The jobs that a job waited for, in the order in which its flow names them.

    Iterate over them (`for parent in job.parents()`, `async for` in async handlers): they are read
    a thousand at a time.
    """

    def __init__(self, job: int) -> None:
        self.job = job

    def __iter__(self) -> Iterator[Parent]:
        position, id = -1, 0
        while batch := self._after(position, id):
            yield from (parent for _position, parent in batch)
            if len(batch) < BATCH:
                return
            position, id = batch[-1][0], batch[-1][1].id

    async def __aiter__(self) -> AsyncIterator[Parent]:
        position, id = -1, 0
        while batch := await sync_to_async(self._after)(position, id):
            for _position, parent in batch:
                yield parent
            if len(batch) < BATCH:
                return
            position, id = batch[-1][0], batch[-1][1].id

    def counts(self) -> dict[str, int]:
        """Return the number of the parents by state, without reading their results."""
        with connections.engine():
            return dict(with_reconnect(lambda: query(_COUNTS, job=self.job)))

    def _after(self, position: int, id: int) -> list[tuple[int, Parent]]:
        """Return the next parents, each with its position."""
        with connections.engine():
            rows = with_reconnect(
                lambda: query(_PARENTS, job=self.job, position=position, id=id, limit=BATCH)
            )
        return [
            (position, Parent(id, name, handler, state, result and json.loads(result), error))
            for position, id, name, handler, state, result, error in rows
        ]
