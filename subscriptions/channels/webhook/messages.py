"""The messages of an endpoint: one for each event and each test, with all of its tries.

A message is a job; when a delivered one is sent again, further jobs of the same event belong to it
(see `tailrace.subscriptions.types.recipient`). All of them have the same webhook-id.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from tailrace.events.publish import Recorded
from tailrace.events.visibility import may_read
from tailrace.jobs.destinations.delivery import breaker_is_open
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.operations import audit
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.states import REPLAYABLE, State
from tailrace.subscriptions.channels.webhook.endpoints import lane_of
from tailrace.subscriptions.channels.webhook.errors import EndpointError
from tailrace.subscriptions.channels.webhook.hosts import QUEUE
from tailrace.subscriptions.channels.webhook.message import body_of, webhook_id
from tailrace.subscriptions.channels.webhook.send_test import SendTest
from tailrace.subscriptions.models import Delivery, Endpoint, Notification
from tailrace.subscriptions.rendering.event_text import render_event
from tailrace.subscriptions.rendering.recorded_events import recorded_events
from tailrace.subscriptions.types.recipient import again, first_job

MAX_AGAIN = 20
"""Times that a delivered message is sent again."""
MAX_TRIES = 200
"""Tries of a message that are shown, the newest."""
HANDLERS = (QUEUE, SendTest.name)
HELD_BACK = "earlier messages failed: one is tried from time to time, the others wait for it"


@dataclass(slots=True)
class Message:
    """A message, what became of it, and its event; the event is None if its owner may not read it
    any more, or if it was deleted."""

    job: Job
    event: Recorded | None
    message_id: str
    again: list[Job] = field(default_factory=list)
    """The jobs that sent it once more, oldest first."""
    tries: list[Delivery] = field(default_factory=list)
    """The newest first."""

    @property
    def id(self) -> int:
        return self.job.pk

    @property
    def event_id(self) -> int | None:
        return self.job.event_id

    @property
    def created_at(self) -> datetime:
        return self.job.created_at

    @property
    def last_job(self) -> Job:
        return self.again[-1] if self.again else self.job

    @property
    def is_test(self) -> bool:
        return self.job.handler == SendTest.name

    @property
    def state(self) -> str:
        """`waiting`, `sending`, `delivered`, `failed`, `cancelled` or `skipped`."""
        state = self.last_job.state
        if self.is_test and state == State.COMPLETED:
            ok = bool(self.tries) and self.tries[0].outcome == Delivery.Outcome.OK
            return "delivered" if ok else "failed"
        return STATES[State(state)]

    @property
    def next_try(self) -> datetime | None:
        """When it is sent next; None if it is not."""
        return self.last_job.due_at if self.last_job.state == State.PENDING else None

    @property
    def reason(self) -> str:
        """Why it waits, failed or was not sent."""
        if self.state == "delivered":
            return ""
        error = self.last_job.error
        return HELD_BACK if error == breaker_is_open(self.job.lane) else error

    @property
    def event_type(self) -> str:
        if self.is_test:
            return str((self.job.payload or {}).get("event_type") or "a test")
        return self.event.type if self.event else ""

    @property
    def title(self) -> str:
        return render_event(self.event).title if self.event else ""

    @property
    def can_be_sent(self) -> bool:
        """Whether `resend` would do something."""
        return not self.is_test and self.event is not None and self.state != "sending"


STATES = {
    State.WAITING: "waiting",
    State.PENDING: "waiting",
    State.RUNNING: "sending",
    State.COMPLETED: "delivered",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
    State.SKIPPED: "skipped",
}


def of_endpoint(endpoint: Endpoint) -> QuerySet[Job]:
    """Return the jobs of its messages, the newest first; those that sent one again are left out."""
    # The index job_of_endpoint is of these handlers, and of recoveries.
    jobs = Job.objects.filter(handler__in=HANDLERS, lane=lane_of(endpoint.pk)).order_by("-id")
    return jobs.exclude(routing_key__contains=":again:")


def find(endpoint: Endpoint, id: int) -> Message | None:
    """Return the message of this endpoint whose first job has this id."""
    job = of_endpoint(endpoint).filter(pk=id).first()
    return describe(endpoint, [job])[0] if job else None


def describe(endpoint: Endpoint, jobs: Sequence[Job]) -> list[Message]:
    """Return the messages of these jobs, in their order, in a few statements."""
    events = {event.id: event for event in recorded_events(job.event_id or 0 for job in jobs)}
    readable = may_read(endpoint.user, events.values())
    repeats = _repeats(jobs)
    tries = _tries(endpoint, [*jobs, *(job for group in repeats.values() for job in group)])
    return [
        Message(
            job=job,
            event=events.get(job.event_id or 0) if job.event_id in readable else None,
            message_id=_message_id(job, events),
            again=repeats[job.pk],
            tries=sorted(
                [row for each in (job, *repeats[job.pk]) for row in tries[each.pk]],
                key=lambda row: -row.pk,
            )[:MAX_TRIES],
        )
        for job in jobs
    ]


def body(endpoint: Endpoint, message: Message) -> str:
    """Return what is sent, as JSON to read; empty for a test, and for what may not be read."""
    if message.event is None:
        return ""
    notifications = Notification.objects.filter(event=message.event.id, user=endpoint.user)
    if (notification := notifications.first()) is None:
        return ""
    content = json.loads(body_of(message.event, notification.role))
    return json.dumps(content, indent=2, ensure_ascii=False)


def resend(endpoint: Endpoint, message: Message, by: User) -> None:
    """Send a message again, whatever became of it, with the same webhook-id.

    One that waits is tried now; a failed, cancelled or skipped one gets all of its tries again; for
    a delivered one there is a further job, MAX_AGAIN times at most. Raises EndpointError.
    """
    if message.is_test:
        raise EndpointError("a test is not sent again: send another test")
    if endpoint.state == Endpoint.State.DISABLED:
        raise EndpointError("the endpoint is disabled: enable it first")
    job = message.last_job
    if job.state in REPLAYABLE:
        result = replay([job.pk], by=by.get_username())
        refused = result.refused.get(job.pk, "")
    elif job.state == State.PENDING:
        retry_now([job.pk], by=by.get_username())
        refused = ""
    elif job.state == State.COMPLETED:
        refused = _send_once_more(message)
    else:
        refused = "it is being sent"
    if refused:
        raise EndpointError(f"message {message.message_id} is not sent again: {refused}")
    audit.record(by, Endpoint, f"sent {message.message_id} again", [(endpoint.pk, str(endpoint))])


def _send_once_more(message: Message) -> str:
    """Enqueue another job of the message; return why not, if not."""
    number = len(message.again) + 1
    if number > MAX_AGAIN:
        return f"it was sent {number} times already"
    if message.event is None:
        return "its event was deleted, or you may not read it any more"
    first = message.job
    key = again(first.routing_key, first.pk, number)
    made = enqueue(QUEUE, event_id=first.event_id, routing_key=key, lane=first.lane)
    return "" if made else "it is being sent"


def _message_id(job: Job, events: dict[int, Recorded]) -> str:
    if job.handler == SendTest.name:
        return str((job.payload or {}).get("message_id", ""))
    event = events.get(job.event_id or 0)
    return webhook_id(job.pk, job.routing_key, event) if event else ""


def _repeats(jobs: Iterable[Job]) -> dict[int, list[Job]]:
    """Return the jobs that sent these jobs of one endpoint again, by the first job."""
    repeats: dict[int, list[Job]] = defaultdict(list)
    if not (sent := [job for job in jobs if job.event_id]):
        return repeats
    prefix = f"{sent[0].routing_key}:"  # those of an endpoint differ in their event alone
    rows = Job.objects.filter(event__in={job.event_id for job in sent}, handler=QUEUE)
    for job in rows.filter(routing_key__startswith=prefix).order_by("id"):
        repeats[first_job(job.routing_key)].append(job)
    return repeats


def _tries(endpoint: Endpoint, jobs: Iterable[Job]) -> dict[int, list[Delivery]]:
    """Return the tries of these jobs, by job."""
    tests = {(job.result or {}).get("delivery"): job.pk for job in jobs if job.event_id is None}
    mine = Q(job_id__in=[job.pk for job in jobs if job.event_id]) | Q(pk__in=set(tests) - {None})
    tries: dict[int, list[Delivery]] = defaultdict(list)
    for row in Delivery.objects.filter(mine, endpoint=endpoint):
        tries[row.job_id or tests[row.pk]].append(row)
    return tries
