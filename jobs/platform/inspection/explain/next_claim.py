"""Whether a claim takes a pending job now, by the conditions of the claim itself (claim_sql).

*In the next claim*: a claim now, of the largest size that the handler allows, takes this job.
*Ready*: a claim now would take this job if claims had no size limit and no other job had to be
claimed on its own. In a queue with lanes both may depend on the lane that the claiming worker
served last.

While another session holds a snapshot, claims may miss for a few seconds jobs that became due long
before they became visible (`tailrace.jobs.engine.claiming.bookmarks`). The next claim that reads
the queue from the beginning takes them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db import transaction

from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.engine.claiming import kinds, pace
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain.limits import Limit, queue_limits
from tailrace.jobs.platform.inspection.explain.order import jobs_before, lane_reasons
from tailrace.jobs.platform.inspection.explain.reasons import MAX_COUNTED, Reason


class Claimable(StrEnum):
    YES = "yes"
    DEPENDS_ON_LANE = "turn"
    """It depends on the lane that the claiming worker served last."""
    NO = "no"


@dataclass(slots=True)
class ClaimStatus:
    """Whether a pending job can be claimed now, and the reasons if not."""

    ready: Claimable = Claimable.NO
    next_claim: Claimable = Claimable.NO
    before: int = 0
    """Jobs that are claimed before it: of its lane if the queue has lanes, else of its queue."""
    reasons: list[Reason] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Preview:
    """The jobs that a claim would choose; a queue with lanes has two possible choices, others one.

    `chosen` and `taken` have a set of job ids for each choice: those that fulfil the conditions,
    and of these the ones that fit into the claim. `isolated` has the jobs that are claimed on
    their own.
    """

    chosen: list[set[int]]
    taken: list[set[int]]
    isolated: list[int]


_CONDITIONS = f"""
SELECT {sql.PENDING}, {sql.DUE}, {sql.IN_LANE}, {sql.OPEN}
FROM tailrace_jobs_job LEFT JOIN tailrace_jobs_queue q ON q.name = handler WHERE id = %(id)s
"""


def claim_status(job: Job, queue: Queue | None) -> ClaimStatus:
    """Return whether this job can be claimed now; reads a bounded number of rows."""
    handler = registry.find(job.handler)
    if handler is None:
        return ClaimStatus(reasons=[_unknown_handler(job, queue)])
    if queue is None:
        words = f"There is no queue {job.handler}; `manage.py migrate` creates it."
        return ClaimStatus(reasons=[Reason("no_queue", words)])
    conditions = query(_CONDITIONS, id=job.pk)
    pending, due, in_lane, is_open = conditions[0] if conditions else (False,) * 4
    if not pending:
        return ClaimStatus(reasons=[Reason("not_pending", f"The job is {job.state}.")])
    status = ClaimStatus(before=jobs_before(job, handler) if due else 0)
    if not is_open:
        status.reasons.append(_paused(queue))
    if not due:
        status.reasons.append(_not_due(job))
    if handler.in_lanes() and not in_lane:
        status.reasons.append(_no_lane(job))
    elif handler.ordered:
        status.reasons += lane_reasons(job)
    limits = queue_limits(handler, queue)
    status.reasons += [limit.reason for limit in limits if limit.allowed <= 0]
    if not status.reasons:
        status.reasons += _row_lock(job)
    if not status.reasons:
        _preview_claims(job, handler, limits, status)
    return status


def _unknown_handler(job: Job, queue: Queue | None) -> Reason:
    words = f"This code has no handler called {job.handler}"
    if queue is None:
        words = f"The database does not know the handler {job.handler} yet"
        then = "The job waits until `manage.py migrate` is run with the code that has the handler."
    elif queue.retired_at is None:
        then = "The code that migrated last has this handler: workers with that code run the job."
    else:
        then = "Deploy a handler of that name, or the sweeper moves the job to failed."
    return Reason("unknown_handler", f"{words}. {then}")


def _paused(queue: Queue) -> Reason:
    by = f" by {queue.paused_by}" if queue.paused_by else ""
    until = f", until {when(queue.paused_until)}" if queue.paused_until else ""
    words = f"The queue {queue.name} has been paused{by} since {when(queue.paused_at)}{until}."
    if queue.paused_reason:
        words += f" Reason: {queue.paused_reason}"
    return Reason("paused", words)


def _not_due(job: Job) -> Reason:
    if job.error and job.claim_no:
        at = when(job.due_at)
        words = f"The job runs again at {at}. Its last claim ended with: {job.error}"
    else:
        words = f"The job is due at {when(job.due_at)}."
    return Reason("not_due", words)


def _no_lane(job: Job) -> Reason:
    words = (
        f"{job.handler} claims its jobs by lane, and this job has no lane: it was created when the "
        "handler had no lanes. `manage.py fsck --fix` sets the lane."
    )
    return Reason("no_lane", words)


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


def _row_lock(job: Job) -> list[Reason]:
    """Return the reason that claims skip the job; empty if they can lock its row."""
    with transaction.atomic(using=home()):
        free = query(_FREE, id=job.pk)
        transaction.set_rollback(True)  # at once: a claim may want the row
    if free:
        return []
    words = "Another transaction has locked the job's row, and claims skip it until that ends"
    for pid, application, began in query(_HOLDER, id=job.pk):
        name = f" ({application})" if application else ""
        words += f": session {pid}{name}, in a transaction since {when(began)}"
    return [Reason("row_locked", f"{words}.")]


# --- preview of claims ----------------------------------------------------------------------------

_LANE_BEFORE = f"""
SELECT lane FROM tailrace_jobs_live WHERE handler = %(handler)s AND {sql.PENDING} AND {sql.IN_LANE}
  AND lane < %(lane)s ORDER BY lane DESC LIMIT 1
"""


def _preview_claims(job: Job, handler: Handler, limits: list[Limit], status: ClaimStatus) -> None:
    """Set `ready` and `next_claim` in the status of a job that fulfils all other conditions."""
    tightest = min(limits, key=lambda limit: limit.allowed, default=None)
    allowed = MAX_COUNTED if tightest is None else min(tightest.allowed, MAX_COUNTED)
    if tightest is None or allowed >= MAX_COUNTED:
        status.ready = Claimable.YES
    else:
        status.ready = _claimable(job, _preview(job, handler, allowed, in_batches=False).chosen)
    if status.ready is Claimable.NO and tightest is not None:
        words = f"{tightest.reason.words} {allowed} more may start, and other jobs come first."
        status.reasons.append(Reason(tightest.reason.code, words, tightest.reason.jobs))
        return
    preview = _preview(job, handler, min(pace.largest_claim(handler), allowed))
    status.next_claim = _claimable(job, preview.taken)
    isolated = [id for id in preview.isolated if id != job.pk]
    if isolated and status.next_claim is not Claimable.YES:
        words = (
            f"Job {isolated[0]} is claimed first and on its own, because a worker was lost while it"
            " ran."
        )
        status.reasons.append(Reason("isolated", words, (isolated[0],)))
        if handler.in_lanes() and _claimable(job, preview.chosen) is not Claimable.NO:
            status.next_claim = Claimable.DEPENDS_ON_LANE


def _claimable(job: Job, choices: list[set[int]]) -> Claimable:
    included = [job.pk in ids for ids in choices]
    if all(included):
        return Claimable.YES
    return Claimable.DEPENDS_ON_LANE if any(included) else Claimable.NO


def _preview(job: Job, handler: Handler, limit: int, *, in_batches: bool = True) -> _Preview:
    """Return the jobs that a claim of at most `limit` jobs would take.

    With `in_batches`, batch sizes limit the claim, too.

    A claim visits the lanes in order, starting after the lane that the worker served last. The
    job's own lane is visited first if the worker served the lane before it, and last if the worker
    served this lane itself. If batches have one batch key, a lane with another key may be visited
    first, too. The preview has the jobs of each of these cases.
    """
    kind, last_lanes = kinds.PLAIN, [""]
    if handler.in_lanes():
        kind = kinds.in_lanes(handler)
        last_lanes = [_lane_before(handler, job.lane), job.lane]
        if handler.in_batches_by_key() and in_batches:
            last_lanes += _before_other_keys(job, handler, limit)
        elif handler.in_batches_by_key():
            kind = kinds.FAIR
    preview = _Preview([], [], [])
    for last_lane in last_lanes:
        rows = _choices(kind, handler, limit, last_lane)
        preview.chosen.append({id for id, _isolate, _taken in rows})
        preview.taken.append({id for id, _isolate, taken in rows if taken})
        preview.isolated.extend(id for id, isolate, _taken in rows if isolate)
    return preview


def _choices(kind: kinds.Kind, handler: Handler, limit: int, last_lane: str) -> list[Any]:
    params = {"handler": handler.name, "limit": limit, "last_lane": last_lane}
    return query(kind.preview, **params, **kind.parameters)


def _lane_before(handler: Handler, lane: str) -> str:
    rows = query(_LANE_BEFORE, handler=handler.name, lane=lane)
    return str(rows[0][0]) if rows else ""


def _before_other_keys(job: Job, handler: Handler, limit: int) -> list[str]:
    """Return the lane before a lane that has due jobs with another batch key, if there is one."""
    due = [id for id, *_rest in _choices(kinds.FAIR, handler, limit, job.lane)]
    lanes = Job.objects.filter(pk__in=due).values_list("lane", flat=True)
    key = job.lane.rpartition("/")[2]
    others = sorted(lane for lane in lanes if lane.rpartition("/")[2] != key)
    return [_lane_before(handler, lane) for lane in others[:1]]
