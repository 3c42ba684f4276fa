"""changes: the events in an order in which nothing ever comes in behind a reader.

Ids are given out before a transaction commits, so one that commits late would lie behind a reader
who goes by ids. The order is (transaction, id), and it is read up to the oldest transaction that
still runs: all before it are committed or gone. Events from before transactions were kept come
first, by id.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from events.models import Event
from subscriptions.api.paging import decode, encode

SCANNED = 5000
"""Events that are looked at for those of some types, at most."""
START = (0, 0)
NOW = "now"


@dataclass(frozen=True, slots=True)
class Place:
    """After which event a reader is: its transaction (0: from before they were kept) and id."""

    xact: int
    id: int

    @classmethod
    def of(cls, cursor: str | None) -> "Place":
        """Read a cursor; none is the beginning, `now` the present end."""
        if cursor is None:
            return cls(*START)
        if cursor == NOW:
            with connection.cursor() as db:
                db.execute(f"SELECT {_OLDEST_RUNNING} - 1")
                return cls(db.fetchone()[0], 2**63 - 1)
        return cls(*decode(cursor, int, int, name="after"))

    def __str__(self) -> str:
        return encode(self.xact, self.id)


@dataclass(frozen=True, slots=True)
class Changes:
    """What comes after a place, and the place behind it."""

    events: list[Event]
    place: Place
    more: bool
    """Whether there may be more at once."""


_OLDEST_RUNNING = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_OLD = "xact IS NULL AND id > %(id)s"
_NEW = f"(xact, id) > (%(xact)s, %(id)s) AND xact < {_OLDEST_RUNNING}"
# The window is what is looked at; of it, what is of the types, with the window's size and end.
_READ = """
WITH scanned AS MATERIALIZED (
  SELECT coalesce(xact, 0) AS at, id, type FROM events_event
  WHERE {where} ORDER BY xact, id LIMIT %(window)s
), ended AS (
  SELECT count(*) AS size, max(ARRAY[at, id]) AS last FROM scanned
)
SELECT found.at, found.id, ended.size, ended.last FROM ended LEFT JOIN LATERAL (
  SELECT at, id FROM scanned
  WHERE %(types)s::text[] IS NULL OR type = ANY(%(types)s)
  ORDER BY at, id LIMIT %(limit)s
) AS found ON true
ORDER BY found.at, found.id
"""


def changes(after: Place, limit: int, types: Sequence[str] | None = None) -> Changes:
    """Return at most `limit` events after a place, of these types (None: all)."""
    found, place, more = _read(_OLD, after, limit, types) if after.xact == 0 else ([], after, False)
    if not more and len(found) < limit:
        rest, place, more = _read(_NEW, place, limit - len(found), types)
        found += rest
    events = Event.objects.in_bulk(found)
    return Changes([events[id] for id in found if id in events], place, more)


def _read(
    where: str, after: Place, limit: int, types: Sequence[str] | None
) -> tuple[list[int], Place, bool]:
    window = limit if types is None else max(SCANNED, limit)
    with connection.cursor() as cursor:
        cursor.execute(
            _READ.format(where=where),
            {"xact": after.xact, "id": after.id, "window": window, "limit": limit,
             "types": None if types is None else list(types)},
        )  # fmt: skip
        rows = cursor.fetchall()
    size, last = rows[0][2:]
    if not size:
        return [], after, False
    found = [(at, id) for at, id, *_ in rows if id is not None]
    full = len(found) == limit
    return [id for _, id in found], Place(*(found[-1] if full else last)), full or size == window
