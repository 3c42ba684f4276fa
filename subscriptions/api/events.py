"""Read one event, follow all events, and record events from outside."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from tailrace.environment.suggest import did_you_mean
from tailrace.events.catalog.topics import all_topic_names, topic_names
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import hidden_from, may_read, may_read_now_or_later
from tailrace.events.publish import Recorded
from tailrace.events.types import all_types
from tailrace.subscriptions.api.changes import NOW, Changes, Position, changes
from tailrace.subscriptions.api.recording import cloudevents
from tailrace.subscriptions.api.recording.cloudevents import CloudEvent
from tailrace.subscriptions.api.recording.ingest import Ingested, ingest
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.audience.explain import explain
from tailrace.web.api.auth import Caller, Needs, caller, count, permission_missing
from tailrace.web.api.pagination import Limit
from tailrace.web.api.problems import not_found, wrong_parameter
from tailrace.web.api.requests.waiting import waiting
from tailrace.web.api.schemas import Out

router = Router()
READ = Needs("events:read", "tailrace_events.view_event")
WRITE = Needs("events:write", "tailrace_events.add_event", json=False)

SEE_RECIPIENTS = "tailrace_subscriptions.view_notification"
MAX_RECIPIENTS = 100
"""The maximum of recipients in a response."""
EVENTS_PER_REQUEST = 20
"""Each further 20 events in a request count as another request."""
POLL_SECONDS = 0.5


class EventOut(Out):
    """A recorded event."""

    id: int
    type: str
    schema_version: int
    source: str
    source_id: str
    subject: str
    actor: str
    occurred_at: datetime
    recorded_at: datetime
    cause_id: int | None
    """The event whose handler published this event; null if you may not read it."""
    problem: str
    """A problem with the event; usually empty."""
    payload: dict[str, Any] | None
    """Null without the permission `tailrace_events.view_payload`."""


class RecipientOut(Out):
    """A recipient, and the role in which it is notified."""

    user: str | None
    group: str | None
    role: str


class ExplanationOut(Out):
    """What a channel sent to a user, and whether and why it would notify the user now."""

    channel: str
    sent: str
    """What was recorded: sent, waiting, failed, not sent; empty if there is no record."""
    notified: bool
    why: str
    role: str
    subscription_id: int | None
    """The deciding subscription."""
    group: str
    """The group that is notified instead of the user."""


class EventDetails(EventOut):
    recipients: list[RecipientOut] | None
    """The first 100 recipients; null without permission to see them."""
    explained: list[ExplanationOut]
    """For each channel, for the caller or `who`: what was sent, and `notified` and `why` by the
    current roles and subscriptions."""


class ExplainParams(BaseModel):
    who: str | None = Field(
        None,
        max_length=150,
        description="login of the user to whom the event is explained (default: yourself);"
        " another user needs the permission `tailrace_subscriptions.view_notification`",
    )


class ChangesOut(Out):
    events: list[EventOut]
    next: str
    """The next value of `after`; store it together with your results for the events."""
    more: bool
    """Whether there may be more events already."""


class ChangesParams(BaseModel):
    after: str | None = Field(
        None, max_length=200, description=f"`next` of the last response; `{NOW}`: new events only"
    )
    types: list[str] = Field(
        [], description="only these event types or families, also separated by commas"
    )
    limit: Limit = 50
    wait: int = Field(0, ge=0, le=20, description="seconds to wait if there is no event yet")


class IngestedOut(Out):
    events: list[Ingested]


@router.get("", auth=READ, response=ChangesOut, summary="Follow events")
def list_events(request: HttpRequest, params: Query[ChangesParams]) -> ChangesOut:
    """Returns events in an order in which no event is skipped or repeated.

    An event whose transaction commits late comes later. An event whose readers are not known yet is
    delayed for up to half a minute, with the events after it. Without `after`, starts with the
    oldest event.
    """
    types = _type_names(params.types)
    user = caller(request).user

    def readable(events: list[Event]) -> tuple[set[int], set[int]]:
        return may_read_now_or_later(user, map(Recorded.from_model, events))

    read = partial(changes, limit=params.limit, types=types, readable=readable)
    result = _read_or_wait(read, Position.of(params.after), params.wait, user.pk)
    events = _without_hidden_fields(caller(request), result.events)
    return ChangesOut(events=events, next=str(result.position), more=result.more)


@router.get("/{int:id}", auth=READ, response=EventDetails, summary="Get an event")
def get_event(request: HttpRequest, id: int, params: Query[ExplainParams]) -> EventDetails:
    api_caller = caller(request)
    user = _user_to_explain(api_caller, params.who)
    event = Event.objects.filter(pk=id).first()
    if event is None or not may_read(api_caller.user, [Recorded.from_model(event)]):
        raise not_found("event")
    (event_out,) = _without_hidden_fields(api_caller, [event])
    return EventDetails(
        **event_out.model_dump(),
        recipients=_recipients(event) if api_caller.may(SEE_RECIPIENTS) else None,
        explained=[ExplanationOut.of(each) for each in explain(Recorded.from_model(event), user)],
    )


def _user_to_explain(api_caller: Caller, login: str | None) -> User:
    if login is None or login == api_caller.user.get_username():
        return api_caller.user
    if not api_caller.may(SEE_RECIPIENTS):
        raise permission_missing(api_caller.user, SEE_RECIPIENTS)
    user = User.objects.filter(username=login).first()
    if user is None:
        raise wrong_parameter("who", "no user has this login")
    return user


def _recipients(event: Event) -> list[RecipientOut]:
    rows = Notification.objects.filter(event=event).order_by("id")
    values = rows.values_list("user__username", "group__name", "role")[:MAX_RECIPIENTS]
    return [RecipientOut(user=user, group=group, role=role) for user, group, role in values]


@router.post(
    "",
    auth=WRITE,
    response={200: IngestedOut, 201: IngestedOut},
    summary="Record events",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                cloudevents.STRUCTURED: {"schema": CloudEvent.model_json_schema()},
                cloudevents.BATCHED: {
                    "schema": {"type": "array", "items": CloudEvent.model_json_schema()}
                },
                cloudevents.BINARY: {"schema": {"type": "object"}},
            },
        },
        "parameters": [
            {
                "in": "header",
                "name": f"ce-{name}",
                "required": False,
                "schema": {"type": "string"},
                "description": "attribute in binary mode, percent-encoded",
            }
            for name in ("specversion", "id", "source", "type", "subject", "time")
        ],
    },
)
def record_events(request: HttpRequest) -> Status[IngestedOut]:
    """Accepts CloudEvents 1.0, structured, batched or binary; records all events or none.

    The token determines the allowed event types and the source, which is stored as
    `api:<user>:<source>`. An event with the same source and id is recorded only once, so a request
    may be repeated at any time. 201 if an event was recorded, else 200. Twenty events count as one
    request, forty as two.
    """
    events = cloudevents.read(request)
    if more := (len(events) - 1) // EVENTS_PER_REQUEST:
        count(request, more)
    results = ingest(caller(request), events)
    status = 201 if any(result.recorded for result in results) else 200
    return Status(status, IngestedOut(events=results))


def _read_or_wait(
    read: Callable[[Position], Changes], after: Position, wait: float, user: int
) -> Changes:
    result = read(after)
    if result.events or not wait:
        return result
    with waiting.place(user) as has_place:
        deadline = time.monotonic() + wait
        while has_place and not result.events and (left := deadline - time.monotonic()) > 0:
            if not result.more:
                time.sleep(min(POLL_SECONDS, left))
            result = read(result.position)
    return result


def _type_names(values: list[str]) -> list[str] | None:
    """Return the names of the event types, including all types of families; None for no names."""
    names = {name.strip() for value in values for name in value.split(",") if name.strip()}
    for name in sorted(names):
        if name not in (known := all_topic_names()):
            hint = did_you_mean(name, known)
            raise wrong_parameter("types", f"no event type or family has the name {name!r}{hint}")
    return [cls.name for cls in all_types() if names & set(topic_names(cls))] if names else None


def _without_hidden_fields(api_caller: Caller, events: Sequence[Event]) -> list[EventOut]:
    """Return these readable events, without payloads and causes that the caller may not see."""
    hidden = {} if api_caller.may("tailrace_events.view_payload") else {"payload": None}
    no_cause = hidden_from(api_caller.user, (event.cause_id for event in events))
    return [
        EventOut.model_validate(event).model_copy(
            update=hidden | ({"cause_id": None} if event.cause_id in no_cause else {})
        )
        for event in events
    ]
