"""Find and repair wrong sources of points. `manage.py fsck` does both."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from django.db.models import F

from tailrace.db.limits import time_limits
from tailrace.db.query import execute, query
from tailrace.domains.timeline.imports.locks import lock_for_chunk
from tailrace.domains.timeline.models import Device, Import, PointSource
from tailrace.domains.timeline.models.location_import import WITHOUT_POINTS
from tailrace.domains.timeline.models.point_source import THE_DEVICE
from tailrace.domains.timeline.points.sources import Span, hand_over, remove_first, remove_further

STATEMENT_SECONDS, LOCK_SECONDS = 60, 2
CHUNK = 10_000
BEGINNING, END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
Source = tuple[int, int]
"""A device, and an import or THE_DEVICE."""

_GONE = "(i.id IS NULL OR i.state = ANY(%(without_points)s))"
_WRONG = f"""
SELECT p.import_id FROM tailrace_timeline_point p
LEFT JOIN tailrace_timeline_import i ON i.id = p.import_id
WHERE p.device_id = %(device)s AND p.import_id IS NOT NULL AND {_GONE}
UNION
SELECT s.import_id FROM tailrace_timeline_pointsource s
LEFT JOIN tailrace_timeline_import i ON i.id = s.import_id
LEFT JOIN tailrace_timeline_point p
  ON (p.device_id, p.recorded_at, p.lon, p.lat) = (s.device_id, s.recorded_at, s.lon, s.lat)
WHERE s.device_id = %(device)s AND (
  (s.import_id <> {THE_DEVICE} AND {_GONE})
  OR ((p.device_id IS NULL OR coalesce(p.import_id, {THE_DEVICE}) = s.import_id)
      AND i.state IS DISTINCT FROM 'undoing'))
ORDER BY 1
"""


def wrong_sources(limit: int) -> list[Source]:
    """Return the sources of which something is wrong, device by device."""
    return list(islice(_wrong_sources(), limit))


def _wrong_sources() -> Iterator[Source]:
    for device in Device.objects.order_by("pk").values_list("pk", flat=True).iterator():
        with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
            rows = query(_WRONG, device=device, without_points=list(WITHOUT_POINTS))
        yield from ((device, source) for (source,) in rows)


_RESTORE = """
WITH lost AS (
  DELETE FROM tailrace_timeline_pointsource s
  WHERE s.device_id = %(device)s AND s.import_id = %(import_id)s AND NOT EXISTS (
    SELECT 1 FROM tailrace_timeline_point p WHERE p.device_id = s.device_id
      AND p.recorded_at = s.recorded_at AND p.lon = s.lon AND p.lat = s.lat)
  RETURNING device_id, recorded_at, lon, lat, import_id
)
INSERT INTO tailrace_timeline_point (device_id, recorded_at, lon, lat, import_id)
SELECT device_id, recorded_at, lon, lat, nullif(import_id, 0) FROM lost
"""
_TWICE = """
DELETE FROM tailrace_timeline_pointsource s USING tailrace_timeline_point p
WHERE s.device_id = %(device)s AND s.import_id = %(import_id)s
  AND (p.device_id, p.recorded_at, p.lon, p.lat) = (s.device_id, s.recorded_at, s.lon, s.lat)
  AND coalesce(p.import_id, 0) = s.import_id
"""


def repair(violations: Sequence[Source]) -> int:
    """Repair these sources; return how many. Runs in one transaction."""
    for device, source in violations:
        lock_for_chunk(device, "UPDATE")
        if source == THE_DEVICE or _is_living(source):
            _restore(device, source)
        else:
            _remove(device, source)
    return len(violations)


def _is_living(import_id: int) -> bool:
    return Import.objects.filter(pk=import_id).exclude(state__in=WITHOUT_POINTS).exists()


def _restore(device: int, source: int) -> None:
    params = {"device": device, "import_id": source}
    hand_over(device, {source: execute(_RESTORE, **params)})
    execute(_TWICE, **params)
    shared = PointSource.objects.filter(device=device, import_id=source).count()
    Import.objects.filter(pk=source).update(shared=shared)


def _remove(device: int, import_id: int) -> None:
    start: datetime | None = BEGINNING
    while start is not None:
        _, start = remove_further(Span(device, import_id, start, END), CHUNK)
    start = BEGINNING
    while start is not None:
        removed = remove_first(Span(device, import_id, start, END), CHUNK)
        hand_over(device, removed.kept)
        start = removed.cursor
    Import.objects.filter(pk=import_id).update(inserted=F("removed"), shared=0)
