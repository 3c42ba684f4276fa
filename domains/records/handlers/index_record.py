"""Add published records to the indexes, with separate jobs for each index."""

from collections.abc import Mapping, Sequence

from tailrace.domains.records.event_types import RecordPublished
from tailrace.domains.records.models import Record
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler


class IndexRecord(Handler):
    """Update a record in one index. The routing key is the name of the index."""

    name = "records.index_record"
    on = [RecordPublished]
    fair = True
    backoff = Backoff(60, 120, 240, 300)
    max_attempts = 5

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return list(backends())

    def lane(self, event: Recorded, routing_key: str) -> str:
        return routing_key

    def batch_sizes(self) -> Mapping[str, int]:
        return {name: backend.batch_size for name, backend in backends().items()}

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        by_key: dict[str, list[ClaimedJob]] = {}
        for job in jobs:
            by_key.setdefault(job.routing_key, []).append(job)
        for name, batch in by_key.items():
            _index(name, batch)


def _index(name: str, jobs: Sequence[ClaimedJob]) -> None:
    backend = backends().get(name)
    if backend is None:
        for job in jobs:
            job.fail(f"there is no index {name!r}; the indexes are {', '.join(backends())}")
        return
    ids = {int(job.event.raw_payload["record"]) for job in jobs if job.event}
    records = list(Record.objects.filter(pk__in=ids).current())
    if withdrawn := ids - {record.pk for record in records}:
        backend.remove(withdrawn)
    if records:
        backend.index(records)
