"""The counts of failure groups that pages show, and which messages a user may read."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.contrib.auth.models import User

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.events.privacy.visibility import VIEW_HIDDEN
from tailrace.jobs.models import FailureGroup, Job
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD, hidden_jobs
from tailrace.jobs.runtime.states import State

MAX_COUNTED = 10_000
SAMPLE = 5
"""Failed jobs of a group that are checked: its message is visible if one of them is."""

# One index range per group, so that the cost does not depend on how many jobs have failed.
_FAILED = """
SELECT g.id, (SELECT count(*) FROM (SELECT 1 FROM tailrace_jobs_live
  WHERE failure_group_id = g.id AND state = 'failed' LIMIT %(cap)s) capped)
FROM unnest(%(ids)s::bigint[]) AS g (id)
"""
_SAMPLES = """
SELECT j.id, j.handler, j.event_id, j.failure_group_id
FROM unnest(%(ids)s::bigint[]) AS g (id) CROSS JOIN LATERAL (
  SELECT id, handler, event_id, failure_group_id FROM tailrace_jobs_live
  WHERE failure_group_id = g.id AND state = 'failed' ORDER BY id DESC LIMIT %(limit)s
) j
"""
_HOURS = """
SELECT group_id, hour, failures FROM tailrace_jobs_failurehour
WHERE group_id = ANY(%(ids)s) AND hour > %(since)s
"""


def failed_now(ids: Sequence[int]) -> dict[int, int]:
    """Return how many jobs of each group are failed now, counted up to MAX_COUNTED."""
    return dict(query(_FAILED, ids=list(ids), cap=MAX_COUNTED))


def per_hour(ids: Sequence[int], hours: int) -> dict[int, list[int]]:
    """Return the failures of each group in each of the last hours, the oldest first."""
    now = clock.now().replace(minute=0, second=0, microsecond=0)
    counts = {id: [0] * hours for id in ids}
    for id, hour, failures in query(_HOURS, ids=list(ids), since=now - timedelta(hours=hours)):
        position = hours - 1 - (now - hour) // timedelta(hours=1)
        if 0 <= position < hours:
            counts[id][position] += failures
    return counts


def readable(user: User, groups: Iterable[FailureGroup]) -> set[int]:
    """Return the ids of the groups whose messages the user may see.

    A message is made from errors, which may quote payloads and hidden events. A user who may not
    see hidden events may read the message only if a failed job of the group is visible to them.
    """
    ids = [group.pk for group in groups]
    if not user.has_perm(VIEW_JOB_PAYLOAD) or not ids:
        return set()
    if user.has_perm(VIEW_HIDDEN):
        return set(ids)
    rows = query(_SAMPLES, ids=ids, limit=SAMPLE)
    group_of = {id: group for id, _handler, _event, group in rows}
    jobs = [Job(pk=id, handler=handler, event_id=event) for id, handler, event, _group in rows]
    hidden = hidden_jobs(user, jobs)
    return {group_of[job.pk] for job in jobs if job.pk not in hidden}


def neighbours(job: Job) -> dict[str, int | None] | None:
    """Return the ids of the failed jobs before (`older`) and after (`newer`) a job in its group;
    None if it has not failed or has no group."""
    if job.state != State.FAILED or job.failure_group_id is None:
        return None
    rows = Job.objects.failed().filter(failure_group=job.failure_group_id)
    ids = rows.values_list("pk", flat=True)
    return {
        "older": ids.filter(pk__lt=job.pk).order_by("-pk").first(),
        "newer": ids.filter(pk__gt=job.pk).order_by("pk").first(),
    }
