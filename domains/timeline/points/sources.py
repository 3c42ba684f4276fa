"""The sources of points: the imports that have a point, and the device itself.

    first source     the point's row: `import_id`, or null for the device itself
    further sources  one row of PointSource each; most points have none

Readers see a point if one of its sources is visible. An undo removes a source; a point whose first
source is removed takes over a further one, and a point without another source is deleted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db.models import F

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.point_source import THE_DEVICE

MAY_BE_UNDONE = f"""(i.undo_until IS NULL OR i.state = 'undoing'
  OR i.undo_until > {clock.NOW} - interval '1 hour')"""
"""SQL: whether the points of an import `i` may still be removed. Only these points need further
sources. The hour is for a decision to undo that has not committed yet."""
UNDOABLE = f"""
SELECT id FROM tailrace_timeline_import i WHERE device_id = %(device)s AND {MAY_BE_UNDONE}
"""
"""SQL: the imports of a device whose points may still be removed."""

_KEY = "(s.device_id, s.recorded_at, s.lon, s.lat) = (p.device_id, p.recorded_at, p.lon, p.lat)"

HIDDEN = f"""
EXISTS (SELECT 1 FROM tailrace_timeline_import i WHERE i.id = p.import_id AND NOT i.visible
  AND NOT EXISTS (
    SELECT 1 FROM tailrace_timeline_pointsource s
    LEFT JOIN tailrace_timeline_import further ON further.id = s.import_id
    WHERE {_KEY} AND (s.import_id = {THE_DEVICE} OR further.visible)))
"""
"""SQL: whether none of the sources of a point `p` is visible."""

OF_IMPORT = """(
  SELECT recorded_at, lon, lat FROM tailrace_timeline_point
  WHERE device_id = %(device)s AND import_id = %(import_id)s
  UNION ALL
  SELECT recorded_at, lon, lat FROM tailrace_timeline_pointsource
  WHERE device_id = %(device)s AND import_id = %(import_id)s
)"""
"""SQL: the points of which an import is a source, as far as that is recorded."""

_LIVING = f"""
  FROM tailrace_timeline_pointsource s LEFT JOIN tailrace_timeline_import i ON i.id = s.import_id
  WHERE {_KEY} AND (s.import_id = {THE_DEVICE} OR i.state <> 'undoing')
"""
KEPT = f"EXISTS (SELECT 1 {_LIVING})"
"""SQL: whether a point `p` stays when its first source is removed."""

_HEIR = f"""
  SELECT s.ctid AS source, s.import_id {_LIVING}
  ORDER BY s.import_id = {THE_DEVICE} DESC, i.visible DESC, s.import_id LIMIT 1
"""
_REMOVE_FIRST = f"""
WITH chosen AS MATERIALIZED (
  SELECT p.point, p.recorded_at, heir.source, heir.import_id
  FROM (
    SELECT ctid AS point, device_id, recorded_at, lon, lat FROM tailrace_timeline_point
    WHERE device_id = %(device)s AND recorded_at >= %(start)s AND recorded_at <= %(end)s
      AND import_id = %(import_id)s
    ORDER BY recorded_at LIMIT %(limit)s
  ) p LEFT JOIN LATERAL ({_HEIR}) heir ON true
), used AS (
  DELETE FROM tailrace_timeline_pointsource WHERE ctid = ANY(ARRAY(SELECT source FROM chosen))
), kept AS (
  UPDATE tailrace_timeline_point p SET import_id = nullif(c.import_id, {THE_DEVICE})
  FROM chosen c WHERE p.ctid = c.point AND c.import_id IS NOT NULL
), gone AS (
  DELETE FROM tailrace_timeline_point
  WHERE ctid = ANY(ARRAY(SELECT point FROM chosen WHERE import_id IS NULL))
)
SELECT import_id, count(*), max(recorded_at) FROM chosen GROUP BY import_id
"""
_REMOVE_FURTHER = """
WITH chosen AS MATERIALIZED (
  SELECT ctid AS source, recorded_at FROM tailrace_timeline_pointsource
  WHERE device_id = %(device)s AND recorded_at >= %(start)s AND recorded_at <= %(end)s
    AND import_id = %(import_id)s
  ORDER BY recorded_at LIMIT %(limit)s
), gone AS (
  DELETE FROM tailrace_timeline_pointsource WHERE ctid = ANY(ARRAY(SELECT source FROM chosen))
)
SELECT count(*), max(recorded_at) FROM chosen
"""
# The planner has no statistics of new rows: it would read all rows up to the end for each chunk,
# and sort them. So it has to read them in the order of the key.
_OTHER_PLANS = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
_BY_KEY = "; ".join(f"SET LOCAL {plan} = off" for plan in _OTHER_PLANS)


@dataclass(frozen=True, slots=True)
class Span:
    """The points of a device from one time to another, both included, of which an import is a
    source."""

    device: int
    import_id: int
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Removed:
    """What the removal of an import as the first source of some points has done."""

    deleted: int
    """Points without another source."""
    kept: dict[int, int]
    """Points by their new first source: an import, or THE_DEVICE."""
    cursor: datetime | None
    """The time of the last of these points; None if there were none."""


def remove_first(span: Span, limit: int) -> Removed:
    """Remove the import as the first source of up to `limit` points, the first ones by time. The
    device must be locked for an undo."""
    execute(_BY_KEY)
    rows = query(_REMOVE_FIRST, limit=limit, **asdict(span))
    counts = {heir: count for heir, count, _ in rows}
    cursor = max((last for _, _, last in rows), default=None)
    return Removed(counts.pop(None, 0), counts, cursor)


def remove_further(span: Span, limit: int) -> tuple[int, datetime | None]:
    """Remove the import as a further source of up to `limit` points, the first ones by time; return
    how many, and the time of the last. The device must be locked for an undo."""
    execute(_BY_KEY)
    [(count, cursor)] = query(_REMOVE_FURTHER, limit=limit, **asdict(span))
    return count, cursor


def hand_over(device: int, kept: Mapping[int, int]) -> int:
    """Count points that have a new first source for that source; return how many points."""
    for source, count in kept.items():
        if source == THE_DEVICE:
            Device.objects.filter(pk=device).update(live_points=F("live_points") + count)
        else:
            Import.objects.filter(pk=source).update(
                inserted=F("inserted") + count,
                duplicates=F("duplicates") - count,
                shared=F("shared") - count,
            )
    return sum(kept.values())
