"""Put uploaded photos into gatherings."""

from collections.abc import Sequence

from tailrace.domains.photos.clustering.cluster_photos import HANDLER, cluster_photos
from tailrace.domains.photos.event_types import Uploaded
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler


class ClusterPhotos(Handler):
    """Put the photo into a gathering, if the rules allow it. The sweeper requeues the others."""

    name = HANDLER
    on = [Uploaded]
    batch_size = 100
    max_attempts = 4
    backoff = Backoff(5, 30, 120)

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return (str(event.payload.photo),)

    def unique_key(self, event: Recorded, routing_key: str) -> str:
        """Allow one waiting job per photo, enqueued by an event or by the sweeper."""
        return routing_key

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        causes = {int(job.routing_key): job.event.id for job in jobs if job.event is not None}
        existing = cluster_photos({int(job.routing_key) for job in jobs}, causes)
        for job in jobs:
            if int(job.routing_key) not in existing:
                job.skip("the photo was deleted")
