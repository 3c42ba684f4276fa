"""The messages of an endpoint: one per event and one per test, with all tries. A message is a job;
if it is sent again, it has further jobs of the same event, with the same webhook-id."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.delivery import breaker_is_open
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.runtime import audit
from tailrace.jobs.runtime.states import REPLAYABLE, State
from tailrace.subscriptions.channels.webhook.hosts import QUEUE
from tailrace.subscriptions.channels.webhook.message import body_of, webhook_id
from tailrace.subscriptions.channels.webhook.operations.endpoints import lane_of
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError
from tailrace.subscriptions.channels.webhook.operations.send_test import SendTest
from tailrace.subscriptions.models import Delivery, Endpoint, Notification
from tailrace.subscriptions.notifications.rendering.event_summary import recorded_events
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tailrace.subscriptions.types.recipient import first_job, resend_key

MAX_AGAIN = 20
"""The maximum number of times that a delivered message is sent again."""
MAX_TRIES = 200
"""The number of tries of a message that are shown: the newest."""
HANDLERS = (QUEUE, SendTest.name)
HELD_BACK = "the endpoint failed: one message is tried from time to time, the others wait"


@dataclass(slots=True)
class Message:
    """A message with its tries and its event."""

    job: Job
    event: Recorded | None
    """None if it was deleted, or if the endpoint's owner may no longer read it."""
    message_id: str
    again: list[Job] = field(default_factory=list)
    """The jobs that sent the message again, oldest first."""
    tries: list[Delivery] = field(default_factory=list)
    """The delivery attempts, newest first."""

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
        """The time of the next try, or None."""
        return self.last_job.due_at if self.last_job.state == State.PENDING else None

    @property
    def reason(self) -> str:
        """Why the message waits, failed or was not sent; empty if it was delivered."""
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
        """Whether `resend` can send the message now."""
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
    """Return the first jobs of the endpoint's messages, newest first."""
    # The index job_of_endpoint covers these handlers, and recoveries.
    jobs = Job.objects.filter(handler__in=HANDLERS, lane=lane_of(endpoint.pk)).order_by("-id")
    return jobs.exclude(routing_key__contains=":again:")


def find(endpoint: Endpoint, id: int) -> Message | None:
    """Return the message of this endpoint whose first job has this id, or None."""
    job = of_endpoint(endpoint).filter(pk=id).first()
    return describe(endpoint, [job])[0] if job else None


def describe(endpoint: Endpoint, jobs: Sequence[Job]) -> list[Message]:
    """Return the messages of these first jobs, in the same order, with a constant number of
    statements."""
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
    """Return the message's body as indented JSON; empty for a test or an unreadable event."""
    if message.event is None:
        return ""
    notifications = Notification.objects.filter(event=message.event.id, user=endpoint.user)
    if (notification := notifications.first()) is None:
        return ""
    content = json.loads(body_of(message.event, notification.role))
    return json.dumps(content, indent=2, ensure_ascii=False)


def resend(endpoint: Endpoint, message: Message, by: User) -> None:
    """Send a message again with the same webhook-id, or raise EndpointError.

    A waiting message is tried now, a failed, cancelled or skipped one gets all of its attempts
    again, a delivered one another job, at most MAX_AGAIN times.
    """
    if message.is_test:
        raise EndpointError("a test cannot be sent again: send another test")
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
        raise EndpointError(f"message {message.message_id} cannot be sent again: {refused}")
    audit.record(by, Endpoint, f"sent {message.message_id} again", [(endpoint.pk, str(endpoint))])


def _send_once_more(message: Message) -> str:
    """Enqueue another job of the message; return an empty text, or the reason for a refusal."""
    number = len(message.again) + 1
    if number > MAX_AGAIN:
        return f"it was already sent {number} times"
    if message.event is None:
        return "its event was deleted, or you may no longer read it"
    first = message.job
    key = resend_key(first.routing_key, first.pk, number)
    new_job = enqueue(QUEUE, event_id=first.event_id, routing_key=key, lane=first.lane)
    return "" if new_job else "it is being sent"


def _message_id(job: Job, events: dict[int, Recorded]) -> str:
    if job.handler == SendTest.name:
        return str((job.payload or {}).get("message_id", ""))
    event = events.get(job.event_id or 0)
    return webhook_id(job.pk, job.routing_key, event) if event else ""


def _repeats(jobs: Iterable[Job]) -> dict[int, list[Job]]:
    """Return the jobs that sent the messages of these jobs again, by the id of the first job."""
    repeats: dict[int, list[Job]] = defaultdict(list)
    if not (event_jobs := [job for job in jobs if job.event_id]):
        return repeats
    prefix = f"{event_jobs[0].routing_key}:"  # the same for all first jobs of an endpoint
    rows = Job.objects.filter(event__in={job.event_id for job in event_jobs}, handler=QUEUE)
    for job in rows.filter(routing_key__startswith=prefix).order_by("id"):
        repeats[first_job(job.routing_key)].append(job)
    return repeats


def _tries(endpoint: Endpoint, jobs: Iterable[Job]) -> dict[int, list[Delivery]]:
    """Return the tries of these jobs, by job."""
    tests = {(job.result or {}).get("delivery"): job.pk for job in jobs if job.event_id is None}
    of_jobs = Q(job_id__in=[job.pk for job in jobs if job.event_id])
    of_tests = Q(pk__in=set(tests) - {None})
    tries: dict[int, list[Delivery]] = defaultdict(list)
    for row in Delivery.objects.filter(of_jobs | of_tests, endpoint=endpoint):
        tries[row.job_id or tests[row.pk]].append(row)
    return tries
