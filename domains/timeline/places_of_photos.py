"""Look up where photos without a place were taken: see `photos.places_requested`."""

from django.db import transaction

from tailrace.domains.timeline.event_types import SOURCE, PlacesKnown
from tailrace.domains.timeline.positions import positions_at
from tailrace.events.erase import erase
from tailrace.events.publish import NewEvent, Recorded, publish

LONGEST_GAP = 86_400
"""Seconds between a photo and a point, at most."""


def publish_places(request: Recorded) -> int:
    """Publish where the user was when these photos were taken, and erase them from the request;
    return how many places are known."""
    wanted = request.payload
    times = {photo.photo: photo.taken_at for photo in wanted.photos}
    places = positions_at(wanted.user_id, times, min(wanted.within_seconds, LONGEST_GAP))
    with transaction.atomic():
        if places:
            publish(
                NewEvent(
                    PlacesKnown,
                    {
                        "user_id": wanted.user_id,
                        "places": [
                            {"photo": photo, "lat": lat, "lon": lon}
                            for photo, (lat, lon) in places.items()
                        ],
                    },
                    source=SOURCE,
                    actor="",
                )
            )
        erase(request.source, [request.source_id], keep=["user_id"])
    return len(places)
