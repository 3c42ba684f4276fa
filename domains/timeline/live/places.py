"""Name the places that a device was in: the cells that its points brought, each once."""

from collections.abc import Sequence

from tailrace.db.arrays import number_array, text_array
from tailrace.db.query import execute
from tailrace.domains.timeline import geocoding
from tailrace.domains.timeline.imports.enrich import NOT_INSTALLED
from tailrace.domains.timeline.models import Place
from tailrace.domains.timeline.models.place import centre_of
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.outcomes import Snooze

NAME_PLACES = "timeline.name_places"
BATCH = 1000
"""Places per transaction."""
MOST_BATCHES = 20
"""Of one run: then other devices have their turn."""
DELAY = 5.0
"""Seconds: cells that come meanwhile are named together."""


def enqueue_naming(device_id: int) -> None:
    """Let a job name the device's new places; joins the transaction that added them."""
    payload = {"device_id": device_id}
    enqueue(NAME_PLACES, payload, unique_key=str(device_id), lane=str(device_id), delay=DELAY)


def name_places(job: ClaimedJob, device_id: int) -> dict[str, int] | str:
    """Name the places of this device that have no name yet; return how many there were."""
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
    raise Snooze("more places are to be named", seconds=0)


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
