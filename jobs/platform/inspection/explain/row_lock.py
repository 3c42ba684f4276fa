"""Check whether another transaction has locked a job's row: claims skip locked rows."""

from django.db import transaction

from tailrace.db.query import query
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain.reasons import Reason

_FREE = f"SELECT 1 FROM tailrace_jobs_job WHERE id = %(id)s {sql.LOCK}"

# xmax is the transaction that locked the row last. If several transactions share the lock, xmax is
# no transaction id, and no holder is found.
_HOLDER = """
SELECT holder.pid, holder.application_name, holder.xact_start
FROM tailrace_jobs_job j
JOIN pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = j.xmax AND l.granted
JOIN pg_stat_activity holder ON holder.pid = l.pid
WHERE j.id = %(id)s
"""


def row_lock(job: Job) -> list[Reason]:
    """Return the reason that claims skip the job; empty if they can lock its row."""
    with transaction.atomic():
        free = query(_FREE, id=job.pk)
        transaction.set_rollback(True)  # at once: a claim may want the row
    if free:
        return []
    words = "Another transaction has locked the job's row, and claims skip it until that ends"
    for pid, application, began in query(_HOLDER, id=job.pk):
        name = f" ({application})" if application else ""
        words += f": session {pid}{name}, in a transaction since {when(began)}"
    return [Reason("row_locked", f"{words}.")]
