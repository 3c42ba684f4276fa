"""events: one by its number, those that come after another, and new ones from outside."""

import threading
import time
from datetime import datetime
from typing import Annotated, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from events.models import Event
from events.suggest import did_you_mean
from events.types import all_types
from subscriptions.api import cloudevents
from subscriptions.api.changes import NOW, Changes, Place, changes
from subscriptions.api.cloudevents import CloudEvent
from subscriptions.api.gate import Caller, Needs, caller, lacks
from subscriptions.api.ingest import Ingested, ingest
from subscriptions.api.paging import Limit
from subscriptions.api.problems import not_found, wrong_parameter
from subscriptions.api.shapes import Out
from subscriptions.explain import explain
from subscriptions.lineage import known_names, lineage
from subscriptions.models import Notification
from subscriptions.readable import may_read
from subscriptions.recall import recall

router = Router()
READ = Needs("events:read", "events.view_event")
WRITE = Needs("events:write", "events.add_event", json=False)

SEES_OTHERS = "subscriptions.view_notification"
HEARD = 100
"""Recipients that are shown, at most."""
LOOK_EVERY = 0.5
_waiting = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))
"""Threads of this process that wait for events, so that some are left for everybody else."""


class EventOut(Out):
    """What happened."""

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
    """The event because of which this one was published."""
    problem: str
    """What is odd about it; mostly empty."""
    payload: dict[str, Any] | None
    """Null without the permission `events.view_payload`."""


class HeardOut(Out):
    """A recipient, and the role that is the reason."""

    user: str | None
    group: str | None
    role: str


class ExplainedOut(Out):
    """Whether somebody heard of the event by a channel, and why or why not."""

    channel: str
    heard: bool
    why: str
    role: str
    subscription_id: int | None
    """The row that decided."""
    group: str
    """The group that hears in the person's place."""


class EventWhole(EventOut):
    heard: list[HeardOut] | None
    """Who was told, the first 100; null without the permission for that."""
    explained: list[ExplainedOut]
    """Of the caller, or of `who`: each channel, as roles and rows stand now."""


class ExplainAsked(BaseModel):
    who: Annotated[
        str | None,
        Field(
            max_length=150,
            description="whose hearing to explain; others than oneself with the permission"
            " `subscriptions.view_notification`",
        ),
    ] = None


class ChangesOut(Out):
    events: list[EventOut]
    next: str
    """What to ask `after` the next time; keep it with what you have done with the events."""
    more: bool
    """Whether to ask again at once."""


class ChangesAsked(BaseModel):
    after: Annotated[
        str | None,
        Field(max_length=200, description=f"`next` of the answer before; `{NOW}`: from now on"),
    ] = None
    types: Annotated[
        list[str], Field(description="only these event types or families; also by commas")
    ] = []
    limit: Limit = 50
    wait: Annotated[
        int, Field(ge=0, le=20, description="seconds to wait for an event if there is none")
    ] = 0


class IngestedOut(Out):
    events: list[Ingested]


@router.get("", auth=READ, response=ChangesOut, summary="Follow what happens")
def list_events(request: HttpRequest, asked: Query[ChangesAsked]) -> ChangesOut:
    """Events in an order in which none is ever skipped, and none comes twice.

    One whose transaction commits late comes later. Without `after`: from the oldest there is.
    """
    who = caller(request)
    found = _follow(Place.of(asked.after), asked.limit, _names(asked.types), asked.wait)
    return ChangesOut(events=_readable(who, found.events), next=str(found.place), more=found.more)


@router.get("/{int:id}", auth=READ, response=EventWhole, summary="One event, and who heard")
def get_event(request: HttpRequest, id: int, asked: Query[ExplainAsked]) -> EventWhole:
    who = caller(request)
    person = _person(who, asked.who)
    event = Event.objects.filter(pk=id).first()
    shown = _readable(who, [event] if event else [])
    if event is None or not shown:
        raise not_found("event")
    return EventWhole(
        **shown[0].model_dump(),
        heard=_heard(event) if who.may(SEES_OTHERS) else None,
        explained=[ExplainedOut.model_validate(one) for one in explain(recall(event), person)],
    )


def _person(who: Caller, login: str | None) -> User:
    if login is None or login == who.user.get_username():
        return who.user
    if not who.may(SEES_OTHERS):
        raise lacks(who.user, SEES_OTHERS)
    found = User.objects.filter(username=login).first()
    if found is None:
        raise wrong_parameter("who", "nobody has this login")
    return found


def _heard(event: Event) -> list[HeardOut]:
    rows = Notification.objects.filter(event=event).select_related("user", "group")
    return [
        HeardOut(
            user=row.user.get_username() if row.user else None,
            group=row.group.name if row.group else None,
            role=row.role,
        )
        for row in rows.order_by("id")[:HEARD]
    ]


_ATTRIBUTES = ("id", "source", "type", "subject", "time")


@router.post(
    "",
    auth=WRITE,
    response={200: IngestedOut, 201: IngestedOut},
    summary="Record what happened elsewhere",
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
                "description": "an attribute in binary mode, percent-encoded",
            }
            for name in ("specversion", *_ATTRIBUTES)
        ],
    },
)
def record_events(request: HttpRequest) -> Status[IngestedOut]:
    """CloudEvents 1.0, structured, batched or binary: all of them are recorded, or none.

    Their types are ours, their `source` is kept as `api:<user>:<source>`. One that is known by
    its source and id is not recorded again, so a request may be sent again at any time. 201 if
    anything was recorded, 200 if all was known.
    """
    answers = ingest(caller(request).user, cloudevents.read(request))
    status = 201 if any(one.recorded for one in answers) else 200
    return Status(status, IngestedOut(events=answers))


def _follow(place: Place, limit: int, types: list[str] | None, wait: float) -> Changes:
    found = changes(place, limit, types)
    if found.events or not wait or not _waiting.acquire(blocking=False):
        return found
    try:
        until = time.monotonic() + wait
        while not found.events and (left := until - time.monotonic()) > 0:
            if not found.more:
                time.sleep(min(LOOK_EVERY, left))
            found = changes(found.place, limit, types)
    finally:
        _waiting.release()
    return found


def _names(asked: list[str]) -> list[str] | None:
    """Return the names of the types meant: families stand for theirs."""
    wanted = {name.strip() for part in asked for name in part.split(",") if name.strip()}
    for name in sorted(wanted):
        if name not in (known := known_names()):
            hint = did_you_mean(name, known)
            raise wrong_parameter("types", f"no event type or family is called {name!r}{hint}")
    return [one.name for one in all_types() if wanted & set(lineage(one))] if wanted else None


def _readable(who: Caller, events: Any) -> list[EventOut]:
    """Return what the caller may read of the events, without what must not be seen of them."""
    known = list(events)
    allowed = may_read(who.user, map(recall, known))
    hides = {} if who.may("events.view_payload") else {"payload": None}
    return [
        EventOut.model_validate(event).model_copy(update=hides)
        for event in known
        if event.pk in allowed
    ]
