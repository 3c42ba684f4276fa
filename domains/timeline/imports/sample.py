"""A sample of an import's points, to draw on a map: at most some thousands of any number."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from tailrace.db.query import query
from tailrace.domains.timeline.imports import cleanup, staging
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import PROMOTED, State

MOST = 2000
"""Points of a sample."""
BREAK = timedelta(minutes=30)
"""A longer gap may break the line."""
MOST_READ = 20_000
Row = tuple[datetime, int, int]
"""Time, longitude, latitude."""

# Of a partition without an index, whole blocks are read.
_STAGED = """
SELECT recorded_at, lon, lat FROM {partition} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (7)
ORDER BY recorded_at LIMIT %(limit)s
"""
# Of the timeline, the first point in each of many equal spans of time.
_PROMOTED = """
SELECT p.recorded_at, p.lon, p.lat
FROM generate_series(0, %(most)s - 1) AS number, LATERAL (
  SELECT recorded_at, lon, lat FROM tailrace_timeline_point
  WHERE device_id = %(device)s AND import_id = %(import_id)s
    AND recorded_at >= %(first)s + number * %(span)s AND recorded_at <= %(last)s
    AND recorded_at < %(first)s + (number + 1) * %(span)s
  ORDER BY recorded_at LIMIT 1
) p
"""


def sample_of(row: Import) -> list[Row]:
    """Return points of the import by time; none of an import that has none to show."""
    if row.first_at is None or row.last_at is None:
        return []
    if row.state in PROMOTED:
        span = (row.last_at - row.first_at) / MOST + timedelta(microseconds=1)
        return query(
            _PROMOTED, device=row.device_id, import_id=row.pk, first=row.first_at,
            last=row.last_at, span=span, most=MOST,
        )  # fmt: skip
    if row.state in (State.GRACE, State.NEEDS_DECISION) and row.pk in cleanup.partitions():
        percent = min(100.0, 100.0 * MOST_READ / max(row.staged, 1))
        partition = staging.partition(row.pk)
        rows = query(_STAGED.format(partition=partition), percent=percent, limit=2 * MOST_READ)
        return thinned(rows)
    return []


def thinned(rows: Sequence[Any]) -> list[Any]:
    """Return at most MOST of the rows, evenly chosen."""
    return list(rows[:: max(1, -(-len(rows) // MOST))])


def segments(rows: Iterable[Row]) -> list[list[list[float]]]:
    """Return lines of [latitude, longitude]; a line ends where there is a gap in time."""
    rows = list(rows)
    if not rows:
        return []
    gap = max(BREAK, 20 * (rows[-1][0] - rows[0][0]) / len(rows))
    lines: list[list[list[float]]] = []
    last: datetime | None = None
    for at, lon, lat in rows:
        if last is None or at - last > gap:
            lines.append([])
        lines[-1].append([round(lat / 1e7, 5), round(lon / 1e7, 5)])
        last = at
    return lines
