"""Read events in an order in which no event is ever inserted before a reader's position.

Ids are assigned before a transaction commits, so a reader that follows ids would miss an event that
commits late. The order is (transaction, id), up to the oldest running transaction: all transactions
before it have ended. Events without a recorded transaction come first, by id.

A reader learns nothing about events that it may not read: pages are filled with other events, and a
position is the position of a returned event, or does not depend on events. An event whose readers
are not known yet delays the events after it, for HOLD_SECONDS at most.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tailrace.db import clock
from tailrace.db.pagination import decode, encode
from tailrace.db.query import query
from tailrace.events.models import Event

MAX_EXAMINED = 5000
"""The number of events that one request examines to find readable events of the requested types."""
HOLD_SECONDS = 30
"""The time after its recording for which an event without known readers delays later events. The
readers are usually known soon, unless the service that knows them is unavailable."""
NEXT_PAGE = 500
"""The number of events that are examined next, after a page with unreadable events."""
COARSE = 1024
"""The end of a window is rounded to a multiple of this number of transactions."""
LAST_ID = 2**63 - 1
NOW = "now"


@dataclass(frozen=True, slots=True)
class Position:
    """The last event that was read: its transaction (0: not recorded) and id."""

    xact: int
    id: int

    @classmethod
    def of(cls, cursor: str | None) -> "Position":
        """Parse a cursor. None is the beginning, `now` the current end."""
        if cursor is None:
            return cls(0, 0)
        if cursor == NOW:
            [(xact,)] = query(f"SELECT {_OLDEST_RUNNING} - 1")
            return cls(xact, LAST_ID)
        return cls(*decode(cursor, int, int, parameter="after"))

    def __str__(self) -> str:
        return encode(self.xact, self.id)


Key = tuple[int, int]
"""Transaction and id of an event."""
Readable = Callable[[list[Event]], tuple[Collection[int], Collection[int]]]


@dataclass(frozen=True, slots=True)
class Changes:
    """Events after a position, and the position after these events."""

    events: list[Event]
    position: Position
    more: bool
    """Whether there may be more events already."""


_OLDEST_RUNNING = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_OLD = "xact IS NULL AND id > %(id)s"
_NEW = f"(xact, id) > (%(xact)s, %(id)s) AND xact < {_OLDEST_RUNNING}"
# Returns the events of the types among the events of a window, with the window's size and end, and
# the last transaction that can be read now.
_READ = f"""
WITH scanned AS MATERIALIZED (
  SELECT coalesce(xact, 0) AS at, id, type FROM tailrace_events_event
  WHERE {{where}} ORDER BY xact, id LIMIT %(window)s
), ended AS (
  SELECT count(*) AS size, max(ARRAY[at, id]) AS last, {_OLDEST_RUNNING} - 1 AS horizon
  FROM scanned
)
SELECT matching.at, matching.id, ended.size, ended.last, ended.horizon
FROM ended LEFT JOIN LATERAL (
  SELECT at, id FROM scanned
  WHERE %(types)s::text[] IS NULL OR type = ANY(%(types)s)
  ORDER BY at, id LIMIT %(limit)s
) AS matching ON true
ORDER BY matching.at, matching.id
"""


def changes(
    after: Position, limit: int, types: Sequence[str] | None, readable: Readable
) -> Changes:
    """Return at most `limit` events after a position, of these types (None: all).

    `readable` takes events, and returns the ids of the readable events and of those whose readers
    are not known yet. Unreadable events are replaced with events of further pages, until
    MAX_EXAMINED events are examined.
    """
    events_by_key: dict[Key, Event] = {}
    position, more, size, examined = after, True, limit, 0
    oldest_held = clock.now() - timedelta(seconds=HOLD_SECONDS)
    while more and examined < MAX_EXAMINED:
        keys, position, more = _page(position, size, types)
        events = Event.objects.in_bulk([id for _, id in keys])
        allowed, undecided = readable(list(events.values()))
        for xact, id in keys:
            if len(events_by_key) == limit:
                break
            if id in allowed:
                events_by_key[xact, id] = events[id]
            elif id in undecided and events[id].recorded_at > oldest_held:
                last = Position(*list(events_by_key)[-1]) if events_by_key else after
                return Changes(list(events_by_key.values()), last, more=False)
        if not keys or len(events_by_key) == limit or len(allowed) == len(events):
            break
        size, examined = NEXT_PAGE, examined + len(keys)
    more = more or len(events_by_key) == limit
    if more and events_by_key:
        position = Position(*list(events_by_key)[-1])
    elif more:
        position = _rounded(after, position)
    return Changes(list(events_by_key.values()), position, more)


def _rounded(after: Position, end: Position) -> Position:
    """Return a position before the end of a window that reveals no event of the window."""
    xact = end.xact - end.xact % COARSE - 1
    return Position(xact, LAST_ID) if xact > after.xact else end


def _page(
    after: Position, limit: int, types: Sequence[str] | None
) -> tuple[list[Key], Position, bool]:
    """Return the keys of at most `limit` events, the position after them, and whether there may be
    more events."""
    keys, position, more = list[Key](), after, False
    if after.xact == 0:
        keys, position, more = _read(_OLD, after, limit, types)
    if not more and len(keys) < limit:
        rest, position, more = _read(_NEW, position, limit - len(keys), types)
        keys += rest
    return keys, position, more


def _read(
    where: str, after: Position, limit: int, types: Sequence[str] | None
) -> tuple[list[Key], Position, bool]:
    window = limit if types is None else max(MAX_EXAMINED, limit)
    rows = query(
        _READ.format(where=where),
        xact=after.xact,
        id=after.id,
        window=window,
        limit=limit,
        types=None if types is None else list(types),
    )
    size, last, horizon = rows[0][2:]
    keys = [(xact, id) for xact, id, *_ in rows if id is not None]
    if len(keys) == limit:
        return keys, Position(*keys[-1]), True
    if size == window:
        return keys, Position(*last), True
    if where == _OLD:
        return keys, Position(*last) if size else after, False
    end = max((horizon, LAST_ID), (after.xact, after.id))
    return keys, Position(*end), False
