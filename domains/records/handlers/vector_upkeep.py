"""Build the HNSW index of an embedding model, and delete the vectors of a former model."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.domains.records.models import EmbeddingIndex
from tailrace.domains.records.search.indexing import embedding_indexes, former_vectors, pgvector
from tailrace.jobs.handler import LOWEST_PRIORITY, ClaimedJob, Handler, Skip, Snooze


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
        """Return the number of deleted vectors."""
        index = EmbeddingIndex.objects.filter(pk=job.payload.index).first()
        if index is None or not embedding_indexes.is_former(index):
            raise Skip("the model is in use again, or was deleted")
        pgvector.drop_index(index)
        count, after = 0, 0
        while (piece := former_vectors.delete_piece(index, after)) is not None:
            if job.shutting_down():
                raise Snooze("the worker is shutting down; another worker continues", seconds=1)
            count, after = count + piece.deleted, piece.until
            job.progress(count)
        index.delete()
        return {"vectors": count}
