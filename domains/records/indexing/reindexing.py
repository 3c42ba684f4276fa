"""Index all records again in one backend, by many small jobs; the other backends are left alone."""

from itertools import pairwise

from tailrace.db.query import query
from tailrace.domains.records.indexing.backends import backends
from tailrace.domains.records.models import Record
from tailrace.jobs.enqueue import enqueue_many

HANDLER = "records.reindex"
PIECE = 1000
"""Records of a job."""
BATCH = 100
"""Records of a call of the backend, at least."""

_ENDS = """
SELECT id FROM (
  SELECT id, row_number() OVER (ORDER BY id) AS number FROM tailrace_records_record) numbered
WHERE number %% %(piece)s = 0
UNION SELECT max(id) FROM tailrace_records_record HAVING max(id) IS NOT NULL
ORDER BY 1
"""


# Each state by its own partial index, so that the history is not read.
_RUNNING = """
SELECT EXISTS (SELECT FROM tailrace_jobs_job
               WHERE handler = %(handler)s AND state = 'pending' AND routing_key = %(backend)s)
    OR EXISTS (SELECT FROM tailrace_jobs_job
               WHERE handler = %(handler)s AND state = 'running' AND routing_key = %(backend)s)
"""


def reindex(backend: str) -> int:
    """Create the jobs that index all records again, a thousand each; return how many are new.

    Pieces that wait for their job already are left to it. Raises KeyError for an unknown backend.
    """
    backends()[backend]
    ends = [0, *(id for (id,) in query(_ENDS, piece=PIECE))]
    return enqueue_many(
        HANDLER,
        [
            {
                "payload": {"backend": backend, "after": after, "until": until},
                "routing_key": backend,
                "unique_key": f"{backend}:{after}:{until}",
            }
            for after, until in pairwise(ends)
        ],
    )


def is_running(backend: str) -> bool:
    """Whether there are jobs that index records again in this backend."""
    return bool(query(_RUNNING, handler=HANDLER, backend=backend)[0][0])


def index_batch(backend: str, after: int, until: int) -> tuple[int, int]:
    """Index the first records with ids after `after` and up to `until`; return how many there were,
    and the last id: `until` at the end."""
    index = backends()[backend]
    size = max(BATCH, index.batch_size)
    rows = list(Record.objects.filter(pk__gt=after, pk__lte=until).order_by("pk")[:size])
    withdrawn = [row.pk for row in rows if row.is_deleted]
    if withdrawn:
        index.remove(withdrawn)
    if current := [row for row in rows if not row.is_deleted]:
        index.index(current)
    return len(rows), rows[-1].pk if len(rows) == size else until
