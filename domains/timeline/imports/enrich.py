"""Enrich a promoted import with the names and time zones of its places.

Its points are in the timeline already: what goes wrong here hides none of them.
"""

from collections.abc import Sequence

from django.db import transaction

from db.arrays import number_array, text_array
from db.query import database_now, execute, query
from domains.timeline import geocoding
from domains.timeline.imports import runs
from domains.timeline.models import Import
from domains.timeline.models.location_import import State
from domains.timeline.models.place import CELL, centre_of
from jobs.handler import ClaimedJob
from jobs.outcomes import Skip, Snooze

BATCH = 5000
"""Places per transaction."""
MOST_PLACES = 200_000
"""Of one import; further ones have no names."""
NOT_INSTALLED = "the names of places are not installed: see requirements-timeline.txt"


def enrich(job: ClaimedJob, import_id: int) -> dict[str, int] | str:
    """Name the places of the import of this job; return how many there are."""
    row = _begin(import_id, runs.run_of(job))
    if not geocoding.is_available():
        _complete(row)
        return NOT_INSTALLED
    cells = _cells(row)
    for start in range(0, len(cells), BATCH):
        if job.shutting_down():
            raise Snooze("the worker has to end", seconds=0)
        _save(row, cells[start : start + BATCH])
        job.progress(min(start + BATCH, len(cells)), len(cells), "places named")
    _complete(row)
    return {"places": len(cells)}


def _begin(import_id: int, run: str) -> Import:
    with transaction.atomic():
        row = Import.objects.select_for_update(no_key=True).filter(pk=import_id).first()
        if row is None or row.state != State.ENRICHING:
            raise Skip("there is nothing to enrich")
        row.run = run
        row.save(update_fields=["run"])
    return row


_CELLS = """
SELECT DISTINCT floor(lat / %(cell)s::float8)::int, floor(lon / %(cell)s::float8)::int
FROM timeline_point
WHERE device_id = %(device)s AND recorded_at BETWEEN %(first)s AND %(last)s
  AND import_id = %(import_id)s
LIMIT %(limit)s
"""


def _cells(row: Import) -> list[tuple[int, int]]:
    """Return the cells of the import's points: latitude, longitude."""
    return query(
        _CELLS, cell=CELL, device=row.device_id, first=row.first_at, last=row.last_at,
        import_id=row.pk, limit=MOST_PLACES,
    )  # fmt: skip


_SAVE = """
INSERT INTO timeline_place (origin_id, cell_lat, cell_lon, name, country, time_zone)
SELECT %(origin)s, cells.* FROM unnest(%(lats)s::int[], %(lons)s::int[], %(names)s::text[],
  %(countries)s::text[], %(zones)s::text[]) AS cells
ON CONFLICT DO NOTHING
"""


def _save(row: Import, cells: Sequence[tuple[int, int]]) -> None:
    """Store the names of these cells, unless the import is being undone."""
    names, countries, zones = zip(
        *geocoding.name_places(centre_of(lat, lon) for lat, lon in cells), strict=True
    )
    with transaction.atomic():
        runs.lock_run(row.pk, row.run, State.ENRICHING)
        execute(
            _SAVE,
            origin=row.pk,
            lats=number_array(lat for lat, _ in cells),
            lons=number_array(lon for _, lon in cells),
            names=text_array(names),
            countries=text_array(countries),
            zones=text_array(zones),
        )


def _complete(row: Import) -> None:
    with transaction.atomic():
        locked = runs.lock_run(row.pk, row.run, State.ENRICHING)
        locked.state, locked.ended_at, locked.job_id = State.COMPLETED, database_now(), None
        locked.save(update_fields=["state", "ended_at", "job_id"])
