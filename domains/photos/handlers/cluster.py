"""photos.cluster: a photo joins a gathering, founds one with others, or waits."""

from collections.abc import Sequence

from domains.photos import clustering
from domains.photos.event_types import Uploaded
from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Backoff, Handler


class Cluster(Handler):
    """Put the photo into its gathering, if it has one by now.

    The routing key is the photo's id. The sweeper enqueues photos that stayed alone again.
    """

    name = "photos.cluster"
    on = [Uploaded]
    batch_size = 100
    max_attempts = 4
    backoff = Backoff(5, 30, 120)

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return (str(event.payload["photo"]),)

    def unique_key(self, event: Recorded, routing_key: str) -> str:
        """Only one job of a photo waits at a time, whoever owes it."""
        return routing_key

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        exist = clustering.cluster({int(job.routing_key) for job in jobs})
        for job in jobs:
            if int(job.routing_key) not in exist:
                job.skip("the photo is gone")
