"""Find the location of photos without one in their owner's timeline. See `exchange.places`."""

from datetime import datetime
from typing import Any

from django.db import transaction

from tailrace.domains.photos.event_types import PlacesRequested
from tailrace.domains.photos.exchange.places.place import place_photos, unplaced_photos
from tailrace.events.privacy.erase import erase
from tailrace.events.publish import Recorded, publish
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip, Snooze


class PerOwnerHandler(Handler):
    """A handler whose lanes are the photos' owners, served in turn."""

    fair = True
    max_attempts = 6
    backoff = Backoff(5, 30, 120, 600)

    def lane(self, event: Recorded, routing_key: str) -> str:
        return str(event.raw_payload.get("user_id") or "")


class RequestPlaces(PerOwnerHandler):
    """Request locations for photos without one, when the timeline got points near their time."""

    name = "photos.request_places"
    on = ["timeline.import_promoted", "timeline.points_added"]

    def handle(self, job: ClaimedJob) -> Any:
        """Return the number of photos for which locations were requested."""
        event = job.require_event()
        payload = event.raw_payload
        if not (payload.get("user_id") and payload.get("first_at") and payload.get("last_at")):
            raise Skip("the event has no user or no time")
        first, last = (datetime.fromisoformat(payload[name]) for name in ("first_at", "last_at"))
        count = 0
        for photos in unplaced_photos(payload["user_id"], first, last):
            publish(PlacesRequested.new_events(payload["user_id"], photos, str(event.id)))
            count += len(photos)
            if job.shutting_down():
                raise Snooze("the worker is shutting down", seconds=0)
        return {"photos": count}


class PlacePhotos(PerOwnerHandler):
    """Store the locations that the timeline found for photos of its user."""

    name = "photos.place_photos"
    on = ["timeline.places_known"]

    def handle(self, job: ClaimedJob) -> Any:
        """Return how many photos got a location. The locations in the event are erased."""
        event = job.require_event()
        payload = event.payload
        places = {each.photo: (each.lat, each.lon) for each in payload.places}
        with transaction.atomic():
            count = place_photos(payload.user_id, places)
            erase(event.source, [event.source_id], keep=["user_id"])
        return {"placed": count}
