"""Index records again: in one backend on request, or by a new embedding model."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.domains.records.indexing import reindexing
from tailrace.domains.records.indexing.backends import backends
from tailrace.jobs.backoff import Backoff
from tailrace.jobs.handler import LOWEST_PRIORITY, ClaimedJob, Handler
from tailrace.jobs.outcomes import Permanent, Snooze


class Reindex(Handler):
    """Index a thousand records again in one backend.

    The routing key is the backend. What is in the index stays until it is replaced.
    """

    name = reindexing.HANDLER
    priority = LOWEST_PRIORITY
    backoff = Backoff(60, 300, 900)
    time_limit = 3600

    class Payload(BaseModel):
        """The backend, and the records with ids after `after` and up to `until`."""

        model_config = ConfigDict(extra="forbid")
        backend: str
        after: int
        until: int

    def handle(self, job: ClaimedJob) -> Any:
        """Return how many records there were."""
        backend, after, until = job.payload.backend, job.payload.after, job.payload.until
        if backend not in backends():
            raise Permanent(f"no index is called {backend!r}")
        done = 0
        while after < until:
            if job.shutting_down():
                raise Snooze("the worker ends: it goes on elsewhere", seconds=1)
            job.check_cancelled()
            count, after = reindexing.index_batch(backend, after, until)
            done += count
            job.progress(done)
        return {"records": done}
