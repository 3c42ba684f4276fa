"""Recoveries: send an endpoint the messages that it missed since a time. Each recovery is a job.

failed    send its failed, cancelled and skipped messages again
missing   send the events that it should get by the user's current subscriptions and its filter,
          and for which it has no message
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from pydantic import BaseModel

from tailrace.db.query import database_now
from tailrace.events.publish import Recorded
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip
from tailrace.jobs.models import Job
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.runtime import audit
from tailrace.jobs.runtime.states import LIVE, REPLAYABLE
from tailrace.subscriptions.channels.webhook.history import messages
from tailrace.subscriptions.channels.webhook.hosts import QUEUE
from tailrace.subscriptions.channels.webhook.operations import filters
from tailrace.subscriptions.channels.webhook.operations.endpoints import lane_of
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError
from tailrace.subscriptions.models import Endpoint
from tailrace.subscriptions.notifications.audience.history import LAST_ID, newest_events
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tailrace.subscriptions.notifications.notify.notifications import write_notifications
from tailrace.subscriptions.notifications.rendering.event_summary import recorded_events
from tailrace.subscriptions.types.recipient import Recipient

What = Literal["failed", "missing"]
MAX_EXAMINED = 20_000
"""The number of messages or events that one recovery examines: the newest."""
PAGE = 500
SHOWN = 10
COST = 20
"""A recovery counts as this number of requests towards the rate limit."""


class Recover(Handler):
    """Send an endpoint's failed messages again, or its missing messages for the first time."""

    name = "subscriptions.webhook_recovery"
    max_attempts = 3
    backoff = Backoff(10, 60)
    time_limit = 600

    class Payload(BaseModel):
        endpoint: int
        what: What
        since: datetime

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        endpoint = Endpoint.objects.select_related("user").filter(pk=job.payload.endpoint).first()
        if endpoint is None:
            raise Skip("the endpoint was deleted")
        if endpoint.state == Endpoint.State.DISABLED or not endpoint.confirmed:
            raise Skip("the endpoint is disabled, or its URL is not confirmed")
        work = _send_failed if job.payload.what == "failed" else _send_missing
        return work(job, endpoint, job.payload.since)


def start(endpoint: Endpoint, what: What, since: datetime, by: User) -> int:
    """Enqueue a recovery, record it in the admin's log, and return the id of its job.

    Raise EndpointError if the endpoint is disabled, if `since` is before JOBS_RETENTION_DAYS or in
    the future, or while another recovery of the endpoint is running.
    """
    now = database_now()
    oldest = now - timedelta(days=settings.JOBS_RETENTION_DAYS)
    if not oldest <= since <= now:
        days = settings.JOBS_RETENTION_DAYS
        raise EndpointError(f"choose a time within the last {days} days, and not in the future")
    if endpoint.state == Endpoint.State.DISABLED:
        raise EndpointError("the endpoint is disabled: enable it first")
    if any(jobs_of(endpoint).filter(state=state).exists() for state in LIVE):
        raise EndpointError("another recovery of this endpoint is running: wait until it ends")
    payload = {"endpoint": endpoint.pk, "what": what, "since": since.isoformat()}
    key = _lane_of(endpoint)
    job = enqueue(Recover, payload, lane=key, unique_key=key)
    assert job is not None  # noqa: S101 it has no event, and the check above found no live job
    action = f"started a recovery: {what} since {since:%Y-%m-%d %H:%M} UTC (job {job})"
    audit.record(by, Endpoint, action, [(endpoint.pk, str(endpoint))])
    return job


def jobs_of(endpoint: Endpoint) -> QuerySet[Job]:
    """Return the recoveries of the endpoint."""
    return Job.objects.filter(handler=Recover.name, lane=_lane_of(endpoint))


def latest(endpoint: Endpoint) -> QuerySet[Job]:
    """Return the endpoint's latest recoveries, newest first."""
    return jobs_of(endpoint).order_by("-id")[:SHOWN]


def _lane_of(endpoint: Endpoint) -> str:
    return f"recovery:{endpoint.pk}"


def _send_failed(job: ClaimedJob, endpoint: Endpoint, since: datetime) -> dict[str, Any]:
    def page(before: int) -> list[Any]:
        rows = messages.of_endpoint(endpoint).filter(pk__lt=before)
        return list(rows.values_list("pk", "created_at", "state", "handler")[:PAGE])

    examined = _examined(page, since)
    # Tests are excluded here: with a condition on the handler, the database would sort the rows.
    failed = [
        id
        for id, at, state, handler in reversed(examined)
        if at >= since and state in REPLAYABLE and handler == QUEUE
    ]
    sent = 0
    for start in range(0, len(failed), PAGE):
        job.check_cancelled()
        sent += len(replay(failed[start : start + PAGE], by="its owner").changed)
        job.progress(sent, len(failed))
    return {"sent": sent, "examined": len(examined), "whole": len(examined) < MAX_EXAMINED}


def _send_missing(job: ClaimedJob, endpoint: Endpoint, since: datetime) -> dict[str, Any]:
    types = [cls.name for cls in filters.sent_types() if filters.admits_type(endpoint, cls.name)]
    examined = _examined(lambda before: newest_events(types, PAGE, before), since)
    ids = [
        id
        for id, at, type_name, subject in reversed(examined)
        if at >= since and filters.admits(endpoint, type_name, subject)
    ]
    sent = 0
    for start in range(0, len(ids), PAGE):
        job.check_cancelled()
        sent += _send_unsent(endpoint, recorded_events(ids[start : start + PAGE]))
        job.progress(min(start + PAGE, len(ids)), len(ids), f"{sent} sent")
    return {"sent": sent, "examined": len(examined), "whole": len(examined) < MAX_EXAMINED}


def _examined(page_before: Callable[[int], list[Any]], since: datetime) -> list[Any]:
    """Return the newest rows (id, time …), page by page, until one is older than `since` or
    MAX_EXAMINED are read."""
    rows: list[Any] = []
    before = LAST_ID
    while len(rows) < MAX_EXAMINED:
        page = page_before(before)
        rows += page
        if len(page) < PAGE or page[-1][1] < since:
            break
        before = page[-1][0]
    return rows


def _send_unsent(endpoint: Endpoint, events: Sequence[Recorded]) -> int:
    """Enqueue a job for each event without a message; return the number of new jobs."""
    user = endpoint.user
    recipients = [
        row
        for row in audiences(events, only_login=user.get_username())
        if row.channel == "webhook" and row.user_id == user.pk
    ]
    keys = {_key(endpoint, row) for row in recipients}
    known = Job.objects.filter(
        event__in={row.event_id for row in recipients}, handler=QUEUE, routing_key__in=keys
    )
    with_message = set(known.values_list("event_id", flat=True))
    missing = [row for row in recipients if row.event_id not in with_message]
    write_notifications(missing)
    lane = lane_of(endpoint.pk)
    jobs = [
        {"event_id": row.event_id, "routing_key": _key(endpoint, row), "lane": lane}
        for row in missing
    ]
    return enqueue_many(QUEUE, jobs)


def _key(endpoint: Endpoint, row: Recipient) -> str:
    return row.key.with_address("endpoint", endpoint.pk)
