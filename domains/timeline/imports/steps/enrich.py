"""Enrich a promoted import: find the nearest town and the time zone of each cell with points.

The points are already visible in the timeline; an error here does not hide them.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from django.db import transaction

from tailrace.db.query import database_now, execute, query
from tailrace.domains.timeline.imports.steps import runs
from tailrace.domains.timeline.models import Import, Place
from tailrace.domains.timeline.models.location_import import State
from tailrace.domains.timeline.models.place import CELL, centre_of
from tailrace.domains.timeline.points import geocoding
from tailrace.domains.timeline.points.sources import OF_IMPORT
from tailrace.jobs.handler import ClaimedJob

BATCH = 5000
"""Cells per transaction."""
POINTS = 1_000_000
"""Approximate number of points whose cells one statement looks up."""
MOST_PLACES = 200_000
"""Maximum cells of an import; further cells get no names."""
NOT_INSTALLED = "the geocoding data is not installed: install tailrace[places]"


def enrich(job: ClaimedJob, import_id: int) -> dict[str, int] | str:
    """Geocode the cells of the import; return their number, or why nothing was done."""
    row = _begin(job, import_id)
    if not geocoding.is_available():
        _complete(row)
        return NOT_INSTALLED
    cells = sorted(_cells(job, row) - _saved_cells(row))
    reporter = runs.Reporter(job, "places named")
    for start in range(0, len(cells), BATCH):
        _save(row, cells[start : start + BATCH])
        reporter.report(min(start + BATCH, len(cells)), len(cells))
    _complete(row)
    return {"places": len(cells)}


def _begin(job: ClaimedJob, import_id: int) -> Import:
    with transaction.atomic():
        row = runs.begin(job, import_id, State.ENRICHING)
        row.save(update_fields=["run"])
    return row


_CELLS = f"""
SELECT DISTINCT floor(lat / %(cell)s::float8)::int, floor(lon / %(cell)s::float8)::int
FROM {OF_IMPORT} p WHERE recorded_at BETWEEN %(start)s AND %(end)s
"""


def _cells(job: ClaimedJob, row: Import) -> set[tuple[int, int]]:
    """Return the cells of the import's points: latitude, longitude."""
    cells: set[tuple[int, int]] = set()
    for start, end in _spans(row):
        runs.check_shutdown(job)
        with transaction.atomic():
            # The planner has no statistics of the new points: it would sort all of them on disk.
            execute("SET LOCAL enable_sort = off")
            cells.update(
                query(
                    _CELLS, cell=CELL, device=row.device_id, import_id=row.pk, start=start, end=end
                )
            )
        if len(cells) >= MOST_PLACES:
            return set(sorted(cells)[:MOST_PLACES])
    return cells


def _spans(row: Import) -> list[tuple[datetime, datetime]]:
    """Divide the time range of the import into spans with about POINTS points each."""
    if row.first_at is None or row.last_at is None:
        return []
    count = max(1, (row.inserted + row.shared) // POINTS)
    step = (row.last_at - row.first_at) / count
    ends = [row.first_at + number * step for number in range(1, count)]
    return list(pairwise([row.first_at, *ends, row.last_at]))


def _saved_cells(row: Import) -> set[tuple[int, int]]:
    """Return the cells that an earlier attempt saved."""
    return set(row.places.values_list("cell_lat", "cell_lon"))


def _save(row: Import, cells: Sequence[tuple[int, int]]) -> None:
    """Geocode these cells and store the results. Raises Skip if the import is being undone."""
    named = geocoding.name_places(centre_of(lat, lon) for lat, lon in cells)
    places = [
        Place(origin=row, cell_lat=lat, cell_lon=lon, **place._asdict())
        for (lat, lon), place in zip(cells, named, strict=True)
    ]
    with transaction.atomic():
        runs.lock_run(row.pk, row.run, State.ENRICHING)
        Place.objects.bulk_create(places)


def _complete(row: Import) -> None:
    with transaction.atomic():
        locked = runs.lock_run(row.pk, row.run, State.ENRICHING)
        locked.state, locked.ended_at, locked.job_id = State.COMPLETED, database_now(), None
        locked.save(update_fields=["state", "ended_at", "job_id"])
