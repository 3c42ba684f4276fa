"""Samples of an import's points for drawing on a map: at most a few thousand points."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from tailrace.db.query import query
from tailrace.domains.timeline.imports import cleanup, staging
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import PROMOTED, State
from tailrace.domains.timeline.points.sources import OF_IMPORT

MOST = 2000
"""Maximum points of a sample."""
BREAK = timedelta(minutes=30)
"""Minimum gap between two points at which the line ends."""
MOST_READ = 20_000
Row = tuple[datetime, int, int]
"""Time, longitude, latitude."""

# The partition has no index: this reads a random sample of its blocks.
_STAGED = """
SELECT recorded_at, lon, lat FROM {partition} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (7)
ORDER BY recorded_at, file_order NULLS FIRST LIMIT %(limit)s
"""
# In the timeline, this reads the first point in each of MOST equal time spans.
_PROMOTED = f"""
SELECT p.recorded_at, p.lon, p.lat
FROM generate_series(0, %(most)s - 1) AS number, LATERAL (
  SELECT recorded_at, lon, lat FROM {OF_IMPORT} points
  WHERE recorded_at >= %(first)s + number * %(span)s AND recorded_at <= %(last)s
    AND recorded_at < %(first)s + (number + 1) * %(span)s
  ORDER BY recorded_at LIMIT 1
) p
"""


def sample_of(row: Import) -> list[Row]:
    """Return a sample of the import's points by time; empty if no points can be shown."""
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
    """Return at most MOST of the rows, evenly spaced."""
    return list(rows[:: max(1, -(-len(rows) // MOST))])


def segments(rows: Iterable[Row]) -> list[list[list[float]]]:
    """Return lines of [latitude, longitude] in degrees. A line ends at a long gap in time."""
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
