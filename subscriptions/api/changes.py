"""Read events in an order in which no event is ever inserted behind a reader.

Ids are assigned before a transaction commits, so a reader that follows ids would miss an event that
commits late. The order is (transaction, id), up to the oldest transaction that is still running:
all before it have ended. Events without a recorded transaction come first, by id.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from db.query import query
from events.models import Event
from web.pagination import decode, encode

MAX_EXAMINED = 5000
"""Events that are examined at once to find those of some types."""
NOW = "now"


@dataclass(frozen=True, slots=True)
class Position:
    """The last event that was read: its transaction (0: not recorded) and id."""

    xact: int
    id: int

    @classmethod
    def of(cls, cursor: str | None) -> "Position":
        """Parse a cursor; None is the beginning, `now` the current end."""
        if cursor is None:
            return cls(0, 0)
        if cursor == NOW:
            [(xact,)] = query(f"SELECT {_OLDEST_RUNNING} - 1")
            return cls(xact, 2**63 - 1)
        return cls(*decode(cursor, int, int, parameter="after"))

    def __str__(self) -> str:
        return encode(self.xact, self.id)


@dataclass(frozen=True, slots=True)
class Changes:
    """Events after a position, and the position after them."""

    events: list[Event]
    position: Position
    more: bool
    """Whether there may be more already."""


_OLDEST_RUNNING = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_OLD = "xact IS NULL AND id > %(id)s"
_NEW = f"(xact, id) > (%(xact)s, %(id)s) AND xact < {_OLDEST_RUNNING}"
# The window holds the events to examine; of these come the events of the types, with the window's
# size and end.
_READ = """
WITH scanned AS MATERIALIZED (
  SELECT coalesce(xact, 0) AS at, id, type FROM events_event
  WHERE {where} ORDER BY xact, id LIMIT %(window)s
), ended AS (
  SELECT count(*) AS size, max(ARRAY[at, id]) AS last FROM scanned
)
SELECT matching.at, matching.id, ended.size, ended.last FROM ended LEFT JOIN LATERAL (
  SELECT at, id FROM scanned
  WHERE %(types)s::text[] IS NULL OR type = ANY(%(types)s)
  ORDER BY at, id LIMIT %(limit)s
) AS matching ON true
ORDER BY matching.at, matching.id
"""


def changes(after: Position, limit: int, types: Sequence[str] | None = None) -> Changes:
    """Return at most `limit` events after a position, of these types (None: all)."""
    ids, position, more = list[int](), after, False
    if after.xact == 0:
        ids, position, more = _read(_OLD, after, limit, types)
    if not more and len(ids) < limit:
        rest, position, more = _read(_NEW, position, limit - len(ids), types)
        ids += rest
    events = Event.objects.in_bulk(ids)
    return Changes([events[id] for id in ids if id in events], position, more)


def _read(
    where: str, after: Position, limit: int, types: Sequence[str] | None
) -> tuple[list[int], Position, bool]:
    window = limit if types is None else max(MAX_EXAMINED, limit)
    rows = query(
        _READ.format(where=where),
        xact=after.xact,
        id=after.id,
        window=window,
        limit=limit,
        types=None if types is None else list(types),
    )
    size, last = rows[0][2:]
    if not size:
        return [], after, False
    keys = [(xact, id) for xact, id, *_ in rows if id is not None]
    full = len(keys) == limit
    return [id for _, id in keys], Position(*(keys[-1] if full else last)), full or size == window
