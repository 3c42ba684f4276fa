"""Index published records: each record in each index, all records again, and for a new model."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.domains.records.event_types import RecordPublished, submitter
from tailrace.domains.records.models import EmbeddingIndex, Record
from tailrace.domains.records.search.indexing import embedding_indexes, pgvector, reindexing
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import (
    LOWEST_PRIORITY,
    Backoff,
    ClaimedJob,
    Handler,
    Permanent,
    Skip,
    Snooze,
)


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
        return f"{submitter(event)}/{routing_key}"

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
    ids = {int(job.require_event().raw_payload["record"]) for job in jobs}
    records = list(Record.objects.filter(pk__in=ids).current())
    if withdrawn := ids - {record.pk for record in records}:
        backend.remove(withdrawn)
    if records:
        backend.index(records)


class Reindex(Handler):
    """Index up to a thousand records again in one index.

    The routing key is the name of the index. Old entries stay in the index until they are replaced.
    """

    name = reindexing.HANDLER
    priority = LOWEST_PRIORITY
    backoff = Backoff(60, 300, 900)
    time_limit = 3600

    class Payload(BaseModel):
        """The index, and a range of records: ids greater than `after`, up to `until`."""

        model_config = ConfigDict(extra="forbid")
        backend: str
        after: int
        until: int

    def handle(self, job: ClaimedJob) -> Any:
        backend, after, until = job.payload.backend, job.payload.after, job.payload.until
        if backend not in backends():
            raise Permanent(f"no index is called {backend!r}")
        done = 0
        while after < until:
            _check_shutdown(job)
            job.check_cancelled()
            count, after = reindexing.index_batch(backend, after, until)
            done += count
            job.progress(done)
        return {"records": done}


class _IndexPayload(BaseModel):
    """The id of an EmbeddingIndex."""

    model_config = ConfigDict(extra="forbid")
    index: int


class BuildVectorIndex(Handler):
    """Build the HNSW index of a model's vectors. Until it is built, search works without it."""

    name = "records.build_vector_index"
    priority = LOWEST_PRIORITY
    max_running = 1
    time_limit = 6 * 3600
    Payload = _IndexPayload

    def handle(self, job: ClaimedJob) -> None:
        index = EmbeddingIndex.objects.filter(pk=job.payload.index).first()
        if index is None:
            raise Skip("the model was deleted")
        pgvector.build_index(index)


class RemoveVectors(Handler):
    """Delete the vectors of a former model, a thousand at a time, and their HNSW index."""

    name = "records.remove_vectors"
    priority = LOWEST_PRIORITY
    max_running = 1
    time_limit = 3600
    Payload = _IndexPayload

    def handle(self, job: ClaimedJob) -> Any:
        index = EmbeddingIndex.objects.filter(pk=job.payload.index).first()
        if index is None or index not in embedding_indexes.former(at_once=True):
            raise Skip("the model is in use again, or was deleted")
        pgvector.drop_index(index)
        count = after = 0
        while (until := reindexing.end_of_piece(after)) is not None:
            _check_shutdown(job)
            count, after = count + embedding_indexes.delete_vectors(index, after, until), until
            job.progress(count)
        index.delete()
        return {"vectors": count}


def _check_shutdown(job: ClaimedJob) -> None:
    if job.shutting_down():
        raise Snooze("the worker is shutting down; another worker continues", seconds=1)
