"""Index records again in one index, on request or for a new embedding model."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.domains.records.search.indexing import reindexing
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.jobs.handler import LOWEST_PRIORITY, Backoff, ClaimedJob, Handler, Permanent, Snooze


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
        """Return the number of records."""
        backend, after, until = job.payload.backend, job.payload.after, job.payload.until
        if backend not in backends():
            raise Permanent(f"no index is called {backend!r}")
        done = 0
        while after < until:
            if job.shutting_down():
                raise Snooze("the worker is shutting down; another worker continues", seconds=1)
            job.check_cancelled()
            count, after = reindexing.index_batch(backend, after, until)
            done += count
            job.progress(done)
        return {"records": done}
