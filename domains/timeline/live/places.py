"""Geocode the new cells of devices: find the nearest town and the time zone of each cell."""

from collections.abc import Sequence

from tailrace.db.query import execute
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.timeline.imports.steps.enrich import NOT_INSTALLED
from tailrace.domains.timeline.models import Place
from tailrace.domains.timeline.models.place import centre_of
from tailrace.domains.timeline.points import geocoding
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob, Snooze

NAME_PLACES = "timeline.name_places"
BATCH = 1000
"""Cells per transaction."""
MOST_BATCHES = 20
"""Maximum batches of one run; the job is snoozed after it, so that other devices are served."""
DELAY = 5.0
"""Seconds in which new cells of a device are collected for one job."""


def enqueue_naming(device_id: int) -> None:
    """Enqueue a job that geocodes the device's new cells. Joins the caller's transaction."""
    payload = {"device_id": device_id}
    enqueue(NAME_PLACES, payload, unique_key=str(device_id), lane=str(device_id), delay=DELAY)


def name_places(job: ClaimedJob, device_id: int) -> dict[str, int] | str:
    """Geocode the new cells of the device; return their number, or why nothing was done."""
    if not geocoding.is_available():
        return NOT_INSTALLED
    unnamed = Place.objects.filter(device=device_id, is_named=False).order_by("pk")
    count = 0
    for _ in range(MOST_BATCHES):
        places = list(unnamed[:BATCH])
        _save(places)
        count += len(places)
        if len(places) < BATCH:
            return {"places": count}
        if job.shutting_down():
            break
    raise Snooze("there are more cells to geocode", seconds=0)


_NAME = """
UPDATE tailrace_timeline_place SET is_named = true, name = new.name, country = new.country,
  time_zone = new.time_zone
FROM unnest(%(ids)s::bigint[], %(names)s::text[], %(countries)s::text[], %(zones)s::text[])
  AS new (id, name, country, time_zone)
WHERE tailrace_timeline_place.id = new.id
"""


def _save(places: Sequence[Place]) -> None:
    named = list(geocoding.name_places(centre_of(p.cell_lat, p.cell_lon) for p in places))
    execute(
        _NAME,
        ids=number_array([place.pk for place in places]),
        names=text_array([place.name for place in named]),
        countries=text_array([place.country for place in named]),
        zones=text_array([place.time_zone for place in named]),
    )
