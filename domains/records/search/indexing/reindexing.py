"""Index all records again in one index, by many small jobs."""

from itertools import pairwise

from tailrace.db.query import query
from tailrace.domains.records.models import Record
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.jobs.enqueue import enqueue_many

HANDLER = "records.reindex"
PIECE = 1000
"""Number of records per job."""
BATCH = 100
"""Minimum number of records per call of the index."""

_ENDS = """
SELECT id FROM (
  SELECT id, row_number() OVER (ORDER BY id) AS number FROM tailrace_records_record) numbered
WHERE number %% %(piece)s = 0
UNION SELECT max(id) FROM tailrace_records_record HAVING max(id) IS NOT NULL
ORDER BY 1
"""


_END = """
SELECT max(id) FROM (
  SELECT id FROM tailrace_records_record WHERE id > %(after)s ORDER BY id LIMIT %(piece)s) piece
"""

# One subquery per state, as each state has a partial index; so finished jobs are not read.
_RUNNING = """
SELECT EXISTS (SELECT FROM tailrace_jobs_job
               WHERE handler = %(handler)s AND state = 'pending' AND routing_key = %(backend)s)
    OR EXISTS (SELECT FROM tailrace_jobs_job
               WHERE handler = %(handler)s AND state = 'running' AND routing_key = %(backend)s)
"""


def reindex(backend: str) -> int:
    """Create jobs that index all records again, a thousand records each; return their number.

    If a job for the same records is still unfinished, no new one is created. Raises KeyError for an
    unknown index.
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


def end_of_piece(after: int) -> int | None:
    """Return the id of the last of the next thousand records after this id; None after the last."""
    [(until,)] = query(_END, after=after, piece=PIECE)
    return until


def is_running(backend: str) -> bool:
    return bool(query(_RUNNING, handler=HANDLER, backend=backend)[0][0])


def index_batch(backend: str, after: int, until: int) -> tuple[int, int]:
    """Index the next batch of records with ids greater than `after`, up to `until`.

    Returns the number of records and the id of the last one, or `until` if no record is left.
    """
    index = backends()[backend]
    size = max(BATCH, index.batch_size)
    rows = list(Record.objects.filter(pk__gt=after, pk__lte=until).order_by("pk")[:size])
    withdrawn = [row.pk for row in rows if row.is_deleted]
    if withdrawn:
        index.remove(withdrawn)
    if current := [row for row in rows if not row.is_deleted]:
        index.index(current)
    return len(rows), rows[-1].pk if len(rows) == size else until
