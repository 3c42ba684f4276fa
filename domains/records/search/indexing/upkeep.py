"""The state of each index, and its operations: replay failed jobs, index all records again."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import query
from tailrace.domains.records.models import Record
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.domains.records.search.indexing.reindexing import reindex
from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tailrace.jobs.runtime import audit

INDEX_RECORD = "records.index_record"
REPLAY = batches.PERMISSION
MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index and the numbers of its jobs, which are counted up to MAX_COUNT."""

    name: str
    description: str
    batch_size: int
    pending: int
    failed: int


_COUNTS = """
SELECT key, (SELECT count(*) FROM (
    SELECT 1 FROM tailrace_jobs_job WHERE handler = %(handler)s AND state = 'pending' AND lane = key
      AND lane <> '' LIMIT %(limit)s) p),
  (SELECT count(*) FROM (
    SELECT 1 FROM tailrace_jobs_job WHERE handler = %(handler)s AND state = 'failed'
      AND routing_key = key
      LIMIT %(limit)s) f)
FROM unnest(%(keys)s::text[]) AS key
"""


def index_states() -> list[IndexState]:
    rows = query(_COUNTS, handler=INDEX_RECORD, keys=list(backends()), limit=MAX_COUNT)
    counts = {key: (pending, failed) for key, pending, failed in rows}
    return [
        IndexState(name, backend.description(), backend.batch_size, *counts[name])
        for name, backend in backends().items()
    ]


def replay_failed(backend: str, by: User) -> str:
    """Replay the failed jobs of one index; return a message about the result."""
    jobs = Job.objects.failed().filter(handler=INDEX_RECORD, routing_key=backend)
    action = batches.JOB_ACTIONS["replay"]
    what = f"failed jobs of the index {backend}"
    return batches.apply(by, action, jobs, what=what).text(action)


def reindex_all(backend: str, by: User) -> str:
    """Index all records again in one index; return a message about the result."""
    with transaction.atomic():
        pieces = reindex(backend)
        audit.record(by, Record, f"requested to index all again: {backend}", [("", backend)])
    return f"{pieces} jobs index all records again in {backend}."
