"""Why a waiting job waits: the parents that have not ended, or its flow is paused."""

from tailrace.db.query import query
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.waking.dependents import NOT_NEEDED
from tailrace.jobs.models import Dependency, Flow, Job, Need
from tailrace.jobs.platform.inspection.display.formatting import state_label, when
from tailrace.jobs.platform.inspection.explain.reasons import Reason, job_count, job_list
from tailrace.jobs.runtime.states import DONE, LIVE

MAX_NAMED = 5
"""Parents that one explanation names."""


def reasons(job: Job) -> list[Reason]:
    """Return why a waiting job waits, and what would let it run."""
    paused = _paused(job)
    if Dependency.objects.filter(job_id=job.pk).exists():
        return [*paused, *_parents(job)]
    return [*paused, *_parent(job, bool(paused))]


def _paused(job: Job) -> list[Reason]:
    paused = Flow.objects.filter(paused_at__isnull=False)
    flow = None if job.flow_id is None else paused.filter(pk=job.flow_id).first()
    if flow is None:
        return []
    words = (
        f"{flow.paused_by or 'Somebody'} paused its flow {flow.pk} ({flow.name}) "
        f"{when(flow.paused_at)}. No job of it begins until the flow is resumed."
    )
    return [Reason("flow_paused", words)]


def _parent(job: Job, is_paused: bool) -> list[Reason]:
    """Return the reason for a job that waits for one parent."""
    if job.after_id is None:
        if is_paused:
            return []
        words = "The job is waiting, but not for any other job: run `manage.py fsck`."
        return [Reason("waits_for_nothing", words)]
    words = f"The job waits for job {job.after_id}"
    # Without its name in the flow, which the reader may not be allowed to see.
    parents = Job.objects.only("id", "handler", "state", "attempt", "due_at")
    if (parent := parents.filter(pk=job.after_id).first()) is None:
        then = "which was deleted, so the sweeper cancels it"
        return [Reason("parent_gone", f"{words}, {then}.", (job.after_id,))]
    words = f"{words} ({parent.handler}), which is {state_label(parent)}"
    if parent.state in LIVE:
        return [Reason("waits", f"{words}.", (parent.pk,))]
    if is_paused:
        return [Reason("parent_finished", f"{words}.", (parent.pk,))]
    then = "queues it" if parent.state in DONE else "cancels it"
    words = f"{words}: the sweeper {then} within seconds."
    return [Reason("parent_finished", words, (parent.pk,))]


_PARENTS = f"""
SELECT d.parent_id, d.need, coalesce(p.state, 'deleted')
FROM tailrace_jobs_dependency d LEFT JOIN tailrace_jobs_job p ON {probe("p.id", "d.parent_id")}
WHERE d.job_id = %(job)s ORDER BY d.position, d.parent_id
"""


def _parents(job: Job) -> list[Reason]:
    """Return the reason for a job that waits for several parents, or for another end than success:
    how many have not ended and which, and whether a parent has decided already how it ends."""
    rows = query(_PARENTS, job=job.pk)
    unfinished = [id for id, _need, state in rows if state in LIVE]
    named = unfinished[:MAX_NAMED]
    ended = len(rows) - len(unfinished)
    if not unfinished:
        words = (
            f"All jobs that it waits for have ended ({len(rows):,}): it is decided within seconds."
        )
        reasons = [Reason("parents_finished", words)]
    else:
        words = (
            f"The job waits for {job_list(named, len(unfinished))}: {ended:,} of {len(rows):,} jobs"
            " that it waits for have ended."
        )
        reasons = [Reason("waits", words, tuple(named))]
    lacking = [
        id for id, need, state in rows if need == Need.SUCCESS and state not in (*LIVE, *DONE)
    ]
    if lacking:
        words = (
            f"It needs the success of {job_list(lacking[:MAX_NAMED], len(lacking))}, which did not "
            "complete: unless replayed before the others end, it is cancelled."
        )
        reasons.append(Reason("parent_failed", words, tuple(lacking[:MAX_NAMED])))
    for_failure = [state for _id, need, state in rows if need == Need.FAILURE]
    if for_failure:
        failed = sum(state in ("failed", "cancelled") for state in for_failure)
        words = (
            f"It runs if at least one of {job_count(len(for_failure))} failed or was cancelled; so "
            f"far {failed:,} did. Otherwise it is skipped: {NOT_NEEDED}."
        )
        reasons.append(Reason("needs_failure", words))
    return reasons
