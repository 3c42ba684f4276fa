"""publish: record what happened, in the caller's own transaction."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction
from pydantic import BaseModel

from events import clock, context, ids
from events.arrays import array, numbers
from events.hot import hot_cursor
from events.models import Event
from events.prepare import Prepared, prepare
from events.signals import published
from events.types import EventType, Quarantined, find_type

LOCAL = "local"
TypeOfEvent = type[EventType]


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be published: its type, what it says, and its envelope."""

    type: type[EventType] | str
    payload: dict[str, Any] | BaseModel = field(default_factory=dict)
    source: str = LOCAL
    source_id: str = ""
    """The fact's id at its source; empty gives a fresh one, so the event is never a duplicate."""
    subject: str | None = None
    """What it is about; None asks the event type."""
    occurred_at: datetime | None = None
    """When it happened (aware); None is the time of recording."""
    actor: str | None = None
    cause_id: int | None = None
    trace_parent: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it stands in the database."""

    id: int
    type: str
    source: str
    source_id: str
    subject: str
    payload: dict[str, Any]
    occurred_at: datetime
    recorded_at: datetime
    actor: str
    cause_id: int | None
    trace_parent: str
    problem: str

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Recorded":
        """Build one from the columns of RECORDED, as a cursor of Django's gives them."""
        id, type, source, source_id, subject, payload, occurred_at, recorded_at, *rest = row
        return cls(
            id, type, source, source_id, subject, json.loads(payload),
            datetime.fromisoformat(occurred_at), datetime.fromisoformat(recorded_at), *rest,
        )  # fmt: skip

    @property
    def event_type(self) -> "TypeOfEvent | None":
        return find_type(self.type)


# Times go as text: they cost a claim less than the driver's own, and many are never looked at.
RECORDED = ", ".join(
    f"e.{column.name}" + ("::text" if column.type is datetime else "")
    for column in fields(Recorded)
)
"""The columns of `events_event e` that make a Recorded, in its order."""


def publish(events: NewEvent | Iterable[NewEvent], *, outside: bool = False) -> list[Recorded]:
    """Record one event or several, and everything owed because of them, or nothing at all.

    Joins the caller's transaction (or opens one): rolled back, nothing stays. Returns the events
    that were recorded now, in their order; one whose (source, source_id) is known is left out.

    From inside, an unknown type raises UnknownEventType and a wrong payload InvalidPayload.
    With `outside=True`, for facts that others sent, such an event is recorded as
    `events.quarantined` with its reason and owes nothing to anybody.
    """
    drafts = [events] if isinstance(events, NewEvent) else list(events)
    prepared = [_prepare(draft, outside) for draft in drafts]
    if not prepared:
        return []
    with transaction.atomic(savepoint=False):
        recorded = _insert(prepared)
        if fresh := [event for event in recorded if event.type != Quarantined.name]:
            published.send(sender=Event, events=fresh)
    return recorded


apublish = sync_to_async(publish, thread_sensitive=True)
"""`await apublish(…)`: publish from an async view, in the thread that owns its connection."""


def _prepare(draft: NewEvent, outside: bool) -> Prepared:
    return prepare(
        type=draft.type,
        payload=draft.payload,
        source=draft.source or LOCAL,
        source_id=draft.source_id or ids.fresh(),
        subject=draft.subject,
        occurred_at=draft.occurred_at,
        actor=context.actor.get() if draft.actor is None else draft.actor,
        cause_id=context.cause.get() if draft.cause_id is None else draft.cause_id,
        trace_parent=(
            context.trace_parent.get() if draft.trace_parent is None else draft.trace_parent
        ),
        outside=outside,
    )


# The rows go in as arrays: one statement and one round trip for one event or a thousand.
_INSERT = f"""
INSERT INTO events_event (source, source_id, type, schema_version, subject, payload, occurred_at,
                          recorded_at, actor, cause_id, trace_parent, problem)
SELECT source, source_id, type, schema_version, subject, payload::jsonb,
       coalesce(occurred_at, {clock.NOW}), {clock.NOW}, actor, cause_id, trace_parent, problem
FROM unnest(%(source)s::text[], %(source_id)s::text[], %(type)s::text[],
            %(schema_version)s::int[], %(subject)s::text[], %(payload)s::text[],
            %(occurred_at)s::timestamptz[], %(actor)s::text[], %(cause_id)s::bigint[],
            %(trace_parent)s::text[], %(problem)s::text[])
  AS new (source, source_id, type, schema_version, subject, payload, occurred_at, actor,
          cause_id, trace_parent, problem)
ON CONFLICT (source, source_id) DO NOTHING
RETURNING id, source, source_id, occurred_at, recorded_at
"""

_COLUMNS = (
    "source",
    "source_id",
    "type",
    "schema_version",
    "subject",
    "occurred_at",
    "actor",
    "cause_id",
    "trace_parent",
    "problem",
)
_NUMBERS = {"schema_version", "cause_id"}


def _insert(prepared: list[Prepared]) -> list[Recorded]:
    params = {
        name: (numbers if name in _NUMBERS else array)([getattr(row, name) for row in prepared])
        for name in _COLUMNS
    }
    params["payload"] = array([row.json for row in prepared])
    with hot_cursor() as cursor:
        cursor.execute(_INSERT, clock.params() | params)
        inserted = cursor.fetchall()
    first: dict[tuple[str, str], Prepared] = {}
    for row in prepared:
        first.setdefault((row.source, row.source_id), row)
    return [
        _recorded(first[source, source_id], id, occurred_at, recorded_at)
        for id, source, source_id, occurred_at, recorded_at in sorted(inserted)
    ]


def _recorded(row: Prepared, id: int, occurred_at: datetime, recorded_at: datetime) -> Recorded:
    return Recorded(
        id=id,
        type=row.type,
        source=row.source,
        source_id=row.source_id,
        subject=row.subject,
        payload=row.payload,
        occurred_at=occurred_at,
        recorded_at=recorded_at,
        actor=row.actor,
        cause_id=row.cause_id,
        trace_parent=row.trace_parent,
        problem=row.problem,
    )
