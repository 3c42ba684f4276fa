"""Data about imports for operators: waiting promotions, tables of staged points, and speeds. It
contains no locations of users."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailrace.db.query import query
from tailrace.domains.timeline.imports import staging
from tailrace.domains.timeline.imports.queues import PROMOTE
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import STAGED
from tailrace.jobs.models import Job

MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Promotion:
    import_id: int
    job_id: int
    running: bool
    due_at: datetime
    before: int
    """Number of promotions ahead, including the running one."""


_LINE = """
SELECT (payload ->> 'import_id')::bigint, id, state = 'running', due_at FROM (
  (SELECT id, payload, state, due_at, 0 AS priority FROM tailrace_jobs_job
   WHERE handler = %(handler)s AND state = 'running' LIMIT 10)
  UNION ALL
  (SELECT id, payload, state, due_at, priority FROM tailrace_jobs_job
   WHERE handler = %(handler)s AND state = 'pending' ORDER BY priority, due_at, id LIMIT %(limit)s)
) line
ORDER BY state = 'running' DESC, priority, due_at, id
"""


def promotion_line() -> list[Promotion]:
    """Return the running promotions, and the first MOST_COUNTED waiting promotions in the order in
    which they begin."""
    return [
        Promotion(import_id, job_id, running, due_at, before)
        for before, (import_id, job_id, running, due_at) in enumerate(
            query(_LINE, handler=PROMOTE, limit=MOST_COUNTED)
        )
    ]


_SIZES = """
SELECT id, pg_total_relation_size(to_regclass(name)) FROM unnest(%(ids)s::bigint[],
  %(names)s::text[]) AS tables (id, name)
"""


def staged_bytes(rows: Iterable[Import]) -> dict[int, int]:
    """Return the sizes of these imports' tables of staged points in bytes, by import id."""
    ids = [row.pk for row in rows if row.state in STAGED]
    names = [staging.partition(id) for id in ids]
    return {id: size for id, size in query(_SIZES, ids=ids, names=names) if size is not None}


def jobs_of(rows: Iterable[Import]) -> dict[int, Job]:
    """Return the jobs of the imports' current steps by import id."""
    import_of = {row.job_id: row.pk for row in rows if row.job_id is not None}
    jobs = Job.objects.filter(pk__in=import_of).defer("payload", "result", "error")
    return {import_of[job.pk]: job for job in jobs}


def rejected_positions(tally: Mapping[str, Any]) -> list[tuple[str, int, list[str]]]:
    """Return each reason with its number of rejected points, and the positions of up to ten of
    them in the file.

    The texts of the points, which may contain coordinates, and the names of files are omitted.
    """
    positions: dict[str, list[str]] = {}
    for item in tally.get("first_rejected", ()):
        position = next((f"{name} {item[name]:,}" for name in _POSITIONS if item.get(name)), "")
        first_positions = positions.setdefault(item["reason"], [])
        if position and len(first_positions) < 10:
            first_positions.append(position)
    counts = Counter(tally.get("rejected", {})).most_common()
    return [(reason, count, positions.get(reason, [])) for reason, count in counts]


_POSITIONS = ("line", "record", "offset")
