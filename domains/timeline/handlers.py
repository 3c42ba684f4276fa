"""The handlers of imports, of points that devices send, and of devices. They call `imports`, `live`
and `devices`."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tailrace.domains.timeline.devices import removal
from tailrace.domains.timeline.imports import cleanup, queues
from tailrace.domains.timeline.imports.steps import promote, stage, undo
from tailrace.domains.timeline.imports.steps.enrich import enrich
from tailrace.domains.timeline.live import announce, places
from tailrace.domains.timeline.points.positions import publish_places
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Snooze

RETRY_SECONDS = 300


class Persistent(Handler):
    """A handler with many attempts, because no user repeats its work."""

    max_attempts = 12
    backoff = Backoff(2, 10, 60, 300)


class ImportStep(Persistent):
    """A step of an import."""

    time_limit = 86_400

    class Payload(BaseModel):
        import_id: int


class Stage(ImportStep):
    """Parse an imported file and stage its points."""

    name = queues.STAGE
    fair = True

    def handle(self, job: ClaimedJob) -> Any:
        return stage.stage(job, job.payload.import_id)


class Promote(ImportStep):
    """Move the staged points of an import into the timeline: one import at a time."""

    name = queues.PROMOTE
    max_running = 1

    def handle(self, job: ClaimedJob) -> Any:
        return promote.promote(job, job.payload.import_id)


class Enrich(ImportStep):
    """Geocode the points of an import: find the nearest towns and the time zones."""

    name = queues.ENRICH
    fair = True

    def handle(self, job: ClaimedJob) -> Any:
        return enrich(job, job.payload.import_id)


class Undo(ImportStep):
    """Delete the points that an import added."""

    name = queues.UNDO
    fair = True

    def handle(self, job: ClaimedJob) -> Any:
        return undo.undo(job, job.payload.import_id)


class DevicePayload(BaseModel):
    device_id: int


class AnnouncePoints(Persistent):
    """Publish one event for all points that a device sent within a few seconds."""

    name = announce.ANNOUNCE
    batch_size = 100
    Payload = DevicePayload

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        announce.announce({job.payload.device_id for job in jobs})


class NamePlaces(Persistent):
    """Geocode the new points of a device: find the nearest towns and the time zones."""

    name = places.NAME_PLACES
    fair = True
    Payload = DevicePayload

    def handle(self, job: ClaimedJob) -> Any:
        return places.name_places(job, job.payload.device_id)


class RemoveDevice(Persistent):
    """Move the points of a device to the device that it is merged into, or delete them."""

    name = removal.REMOVE
    fair = True
    time_limit = 86_400
    Payload = DevicePayload

    def handle(self, job: ClaimedJob) -> Any:
        return removal.remove(job, job.payload.device_id)


class LookUpPlaces(Handler):
    """Look up where a user was when photos without a location were taken; publish the result."""

    name = "timeline.look_up_places"
    on = ["photos.places_requested"]
    fair = True
    max_attempts = 6
    backoff = Backoff(5, 30, 120, 600)

    def lane(self, event: Recorded, routing_key: str) -> str:
        return str(event.raw_payload["user_id"])

    def handle(self, job: ClaimedJob) -> Any:
        return {"places": publish_places(job.require_event())}


class Discard(Persistent):
    """Drop the staged points of an import and delete its file; retry until both are deleted."""

    name = queues.DISCARD
    backoff = Backoff(2, 10, 60, 300, 3600)

    class Payload(BaseModel):
        import_id: int
        storage_key: str

    def handle(self, job: ClaimedJob) -> None:
        if not cleanup.discard(job.payload.import_id, job.payload.storage_key):
            raise Snooze("the file cannot be deleted now", seconds=RETRY_SECONDS)
