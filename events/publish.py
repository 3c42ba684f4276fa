"""Record events in the caller's transaction."""

import itertools
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from pydantic import BaseModel, ValidationError

from tailrace.db import clock, connections, locks
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import arrays, text_array
from tailrace.events import context
from tailrace.events.errors import UnreadablePayload
from tailrace.events.models import Event
from tailrace.events.publishing.signals import published
from tailrace.events.publishing.tracing import published as published_span
from tailrace.events.publishing.validation import EventRow, describe, validate
from tailrace.events.types import EventType, Quarantined, find_type
from tailrace.net import tracing

LOCAL = "local"
KEYS_NAMED = 3
"""The maximum number of events that an error message names."""
TypeOfEvent = type[EventType]


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to publish."""

    type: type[EventType] | str
    payload: dict[str, Any] | BaseModel = field(default_factory=dict)
    source: str = LOCAL
    source_id: str = ""
    """The event's id at its source. Empty: a new id, so that the event is never a duplicate."""
    subject: str | None = None
    """The thing that the event is about. None: `EventType.subject` computes it."""
    occurred_at: datetime | None = None
    """The time of the event, with a time zone. None: the time of recording."""
    actor: str | None = None
    cause_id: int | None = None
    trace_parent: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded event: the values in its database row."""

    id: int
    type: str
    source: str
    source_id: str
    subject: str
    raw_payload: dict[str, Any]
    """The payload as stored JSON."""
    occurred_at: datetime
    recorded_at: datetime
    actor: str
    cause_id: int | None
    trace_parent: str
    problem: str
    _model: BaseModel | None = field(default=None, repr=False, compare=False, kw_only=True)

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Recorded":
        """Create an instance from the columns of RECORDED, as Django's cursor returns them."""
        id, type, source, source_id, subject, payload, occurred_at, recorded_at, *rest = row
        return cls(
            id, type, source, source_id, subject, json.loads(payload),
            datetime.fromisoformat(occurred_at), datetime.fromisoformat(recorded_at), *rest,
        )  # fmt: skip

    @classmethod
    def from_model(cls, event: Event) -> "Recorded":
        return cls(**{name: getattr(event, column) for name, column in _COLUMN_OF.items()})

    @property
    def event_type(self) -> "TypeOfEvent | None":
        return find_type(self.type)

    @property
    def payload(self) -> Any:
        """The payload as an instance of the event type's Payload, validated at first use. Raises
        UnreadablePayload if no app declares the type, or its current Payload does not accept the
        recorded JSON; `raw_payload` always returns that JSON."""
        if self._model is None:
            object.__setattr__(self, "_model", self._load())
        return self._model

    def _load(self) -> BaseModel:
        if self.event_type is None:
            problem = "no app declares this event type"
        else:
            try:
                return self.event_type.load(self.raw_payload)
            except ValidationError as error:
                problem = describe(error)
        raise UnreadablePayload(
            f"event {self.id} ({self.type}) cannot be read: {problem}; `raw_payload` has its JSON"
        )


_STORED = [column for column in fields(Recorded) if column.name != "_model"]
_COLUMN_OF = {column.name: column.name.removeprefix("raw_") for column in _STORED}
"""The column of each field."""

# Times are read as text, which is faster than the driver's conversion; many are never used.
RECORDED = ", ".join(
    f"e.{_COLUMN_OF[column.name]}" + ("::text" if column.type is datetime else "")
    for column in _STORED
)
"""The columns of `tailrace_events_event e`, in the order of the fields of Recorded."""


def publish(
    events: NewEvent | Iterable[NewEvent], *, outside: bool = False, independent: bool = False
) -> list[Recorded]:
    """Record one or several events with all their jobs, or nothing if an event is invalid.

    Joins the caller's transaction, or opens one. Returns the newly recorded events in the given
    order. Events whose (source, source_id) is recorded already are left out.

    With `independent=True`, the events are committed at once, on the engine's connection, whatever
    happens to the caller's transaction: also if the request fails after this. Handlers may then run
    before that transaction commits, so they must not need its rows.

    Raises Blocked if another open transaction has locked one of the events, or a unique key of
    their jobs, for more than ten seconds, or in a deadlock. Then roll the transaction back and try
    again. If `publish` opened the transaction, it has already tried twice.

    Raises UnknownEventType or InvalidPayload. With `outside=True`, for events that external systems
    sent, an invalid event is instead recorded as `events.quarantined`, with the reason and without
    jobs.
    """
    drafts = [events] if isinstance(events, NewEvent) else list(events)
    rows = [_validated(draft, outside) for draft in drafts]
    if not rows:
        return []
    with_ids = any(draft.source_id for draft in drafts)
    with connections.engine_if(independent):
        if not tracing.on:
            return locks.in_transaction(lambda: _record(rows, with_ids))
        with published_span(rows) as traced:
            return locks.in_transaction(lambda: _record(traced, with_ids))


def _record(rows: list[EventRow], with_ids: bool) -> list[Recorded]:
    with locks.named(lambda: _describe_keys(rows)):
        recorded = _insert(rows, _INSERT_ONCE if with_ids else _INSERT)
    if valid := [event for event in recorded if event.type != Quarantined.name]:
        published.send(sender=Event, events=valid)
    return recorded


apublish = sync_to_async(publish, thread_sensitive=True)
"""Call `await apublish(…)` in an async view: it publishes in the thread of the connection."""


def _validated(draft: NewEvent, outside: bool) -> EventRow:
    return validate(
        type=draft.type,
        payload=draft.payload,
        source=draft.source or LOCAL,
        source_id=draft.source_id or _unique_id(),
        subject=draft.subject,
        occurred_at=draft.occurred_at,
        actor=context.actor.get() if draft.actor is None else draft.actor,
        cause_id=context.cause.get() if draft.cause_id is None else draft.cause_id,
        trace_parent=(
            context.trace_parent.get() if draft.trace_parent is None else draft.trace_parent
        ),
        outside=outside,
    )


_TYPES = {
    "source": "text", "source_id": "text", "type": "text", "schema_version": "int",
    "subject": "text", "payload": "text", "occurred_at": "timestamptz", "actor": "text",
    "cause_id": "bigint", "trace_parent": "text", "problem": "text",
}  # fmt: skip
_NAMES = ", ".join(_TYPES)
# The rows are passed as arrays: any number of events takes one statement and one round trip.
_ROWS = f"unnest({', '.join(f'%({name})s::{type}[]' for name, type in _TYPES.items())})"
_TARGETS = f"{_NAMES}, recorded_at"
_VALUES = f"""source, source_id, type, schema_version, subject, payload::jsonb,
  coalesce(occurred_at, {clock.NOW}), actor, cause_id, trace_parent, problem, {clock.NOW}"""
_RETURNED = "id, source, source_id, occurred_at, recorded_at"

# For events with new source ids, which cannot conflict with others.
_INSERT = f"""
INSERT INTO tailrace_events_event ({_TARGETS})
SELECT {_VALUES} FROM {_ROWS} AS new ({_NAMES})
ON CONFLICT (source, source_id) DO NOTHING
RETURNING {_RETURNED}
"""

# If another open transaction has inserted one of the events, the statement waits for it, up to the
# lock timeout. Ids follow the order of the call. Rows are inserted in the order of their keys, so
# that two calls with the same events cannot deadlock.
_INSERT_ONCE = f"""
WITH {locks.LIMITED},
new AS MATERIALIZED (
  SELECT nextval('tailrace_events_event_id_seq') AS id, numbered.*
  FROM {_ROWS} WITH ORDINALITY AS numbered ({_NAMES}, place)
),
inserted AS (
  INSERT INTO tailrace_events_event (id, {_TARGETS})
  SELECT id, {_VALUES} FROM limited, new ORDER BY source, source_id, place
  ON CONFLICT (source, source_id) DO NOTHING
  RETURNING {_RETURNED}
), {locks.restored("inserted")}
SELECT {_RETURNED} FROM restored, inserted
"""

_COLUMNS = _TYPES.keys() - {"payload"}
_NUMBERS = {"schema_version", "cause_id"}
_ROW_FIELDS = _COLUMN_OF.keys() - {"id", "occurred_at", "recorded_at"}


def _insert(rows: list[EventRow], statement: str) -> list[Recorded]:
    payloads = text_array([row.json for row in rows])
    inserted = prepared(
        statement, **locks.params(), **arrays(rows, _COLUMNS, _NUMBERS), payload=payloads
    )
    first: dict[tuple[str, str], EventRow] = {}
    for row in rows:
        first.setdefault((row.source, row.source_id), row)
    return [
        _recorded(first[source, source_id], id, occurred_at, recorded_at)
        for id, source, source_id, occurred_at, recorded_at in sorted(inserted)
    ]


def _describe_keys(rows: list[EventRow]) -> str:
    named = ", ".join(f"{row.source_id!r} of {row.source!r}" for row in rows[:KEYS_NAMED])
    more = f" or {len(rows) - KEYS_NAMED} more" if len(rows) > KEYS_NAMED else ""
    return f"the event {named}{more}"


def _recorded(row: EventRow, id: int, occurred_at: datetime, recorded_at: datetime) -> Recorded:
    return Recorded(
        id=id,
        occurred_at=occurred_at,
        recorded_at=recorded_at,
        _model=row.model,
        **{name: getattr(row, name) for name in _ROW_FIELDS},
    )


ID_PREFIX_BYTES = 12
_id_prefix: str
_id_numbers: Iterator[int]


def _restart_ids() -> None:
    global _id_prefix, _id_numbers
    _id_prefix, _id_numbers = secrets.token_hex(ID_PREFIX_BYTES), itertools.count(1)


_restart_ids()
os.register_at_fork(after_in_child=_restart_ids)


def _unique_id() -> str:
    """Return an id that no other process makes: a random prefix of the process and a number. It is
    cheaper than a random number for each event, and the ids are next to each other in an index, so
    that many events touch few of its pages."""
    return f"{_id_prefix}-{next(_id_numbers):x}"
