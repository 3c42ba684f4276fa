"""Look up where photos without a location were taken, to answer `photos.places_requested`."""

from django.db import transaction

from tailrace.domains.timeline.event_types import SOURCE, PlacesKnown
from tailrace.domains.timeline.points.positions import positions_at
from tailrace.events.privacy.erase import erase
from tailrace.events.publish import NewEvent, Recorded, publish

LONGEST_GAP = 86_400
"""Maximum seconds between a photo and a point."""


def publish_places(request: Recorded) -> int:
    """Publish where the user was when the photos of the request were taken; return how many
    locations are known. The photos are erased from the request."""
    payload = request.payload
    times = {photo.photo: photo.taken_at for photo in payload.photos}
    positions = positions_at(payload.user_id, times, min(payload.within_seconds, LONGEST_GAP))
    with transaction.atomic():
        if positions:
            publish(
                NewEvent(
                    PlacesKnown,
                    {
                        "user_id": payload.user_id,
                        "places": [
                            {"photo": photo, "lat": lat, "lon": lon}
                            for photo, (lat, lon) in positions.items()
                        ],
                    },
                    source=SOURCE,
                    actor="",
                )
            )
        erase(request.source, [request.source_id], keep=["user_id"])
    return len(positions)
