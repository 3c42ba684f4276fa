"""Replay all jobs that match a filter, in several requests."""

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Body, Router

from tailrace.db.pagination import InvalidCursor
from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.filters import Filters, below, cursor_of, window
from tailrace.web.api.jobs.schemas import ReplayIn, ReplayOut
from tailrace.web.api.jobs.showing import shown
from tailrace.web.api.problems import wrong_body, wrong_field

router = Router()
OPERATE = Needs("jobs:operate", "tailrace_jobs.view_job", batches.PERMISSION, cost=5)
SAMPLE = 10


@router.post("/replay", auth=OPERATE, response=ReplayOut, summary="Replay jobs by a filter")
def replay_jobs(request: HttpRequest, body: Body[ReplayIn]) -> ReplayOut:
    """Replay up to `limit` matching jobs, newest first, in transactions of up to 500 jobs. To
    replay the rest, send `next` as `cursor` until it is null. The filter must name a handler, an
    event or a schedule.

    With `dry_run` nothing is changed: `jobs` is the number of matching jobs, counted up to 10,000.
    """
    filters = Filters.of(body)
    if not any((body.handler, body.event, body.schedule)):
        detail = "name a handler, an event or a schedule: all jobs cannot be replayed at once"
        raise wrong_body(detail)
    try:
        rows, end = window(filters, below(body.cursor))
    except InvalidCursor:
        raise wrong_field("cursor", "not a cursor of this list") from None
    user = caller(request).user
    return _dry_run(user, rows, end) if body.dry_run else _replay(user, rows, end, body)


def _dry_run(user: User, rows: QuerySet[Job], end: int | None) -> ReplayOut:
    ids = list(rows.values_list("pk", flat=True)[: batches.MAX_JOBS + 1])
    if len(ids) > batches.MAX_JOBS:
        ids = ids[: batches.MAX_JOBS]
        end = ids[-1]
    sample = shown(user, list(rows[:SAMPLE]))
    return ReplayOut(dry_run=True, jobs=len(ids), sample=sample, refused={}, next=cursor_of(end))


def _replay(user: User, rows: QuerySet[Job], end: int | None, body: ReplayIn) -> ReplayOut:
    action = batches.JOB_ACTIONS["replay"]
    names = ("state", "handler", "event", "schedule")
    what = ", ".join(f"{name} = {value}" for name in names if (value := getattr(body, name)))
    summary = batches.apply(user, action, rows, body.limit, what=what)
    next = cursor_of(summary.last if summary.more else end)
    refused = dict(summary.refused)
    return ReplayOut(dry_run=False, jobs=summary.changed, sample=[], refused=refused, next=next)
