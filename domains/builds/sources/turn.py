"""Turn: the right to read one backend's log, and to move its cursor. One holds it at a time.

The right is a lease on the poller's row, taken by a guarded UPDATE. No lock is held while the
backend is asked. Each step that moves the cursor is guarded by the holder and by the cursor's old
place, in the transaction that records the events; who lost the turn records nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from domains.builds.models import Poller
from domains.builds.sources.client import BLOCK_SECONDS
from domains.builds.sources.record import record
from events import clock
from events.publish import NewEvent

SPARE_SECONDS = 15
"""The lease outlives the longest request by this."""
LONGEST_BACKOFF = 300.0


class NotNow(Exception):
    """Somebody else has the turn, or the backend is left alone for a while."""


class TurnLost(Exception):
    """The lease ran out and another took it: what was read is not recorded."""


def lease_seconds() -> float:
    """Return how long a turn lasts without a sign of life."""
    longest = float(settings.OBS_TIMEOUT_SECONDS)
    longest += BLOCK_SECONDS if settings.OBS_LONG_POLL else 0
    return longest + SPARE_SECONDS


_TAKE = f"""
UPDATE builds_poller
SET lease_holder = %(holder)s, lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE name = %(name)s
  AND (backoff_until IS NULL OR backoff_until <= {clock.NOW})
  AND (lease_until IS NULL OR lease_until <= {clock.NOW}
       OR split_part(lease_holder, '.', 1) = split_part(%(holder)s, '.', 1))
RETURNING id, epoch, next_number
"""
_GUARD = "id = %(id)s AND lease_holder = %(holder)s"
_RENEW = f"""
UPDATE builds_poller SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_GUARD}
"""
_ADVANCE = f"""
UPDATE builds_poller
SET epoch = %(to_epoch)s, next_number = %(to_number)s, polled_at = {clock.NOW},
    end_seen = greatest(%(end)s, %(to_number)s),
    last_event_at = coalesce(%(last_event_at)s, last_event_at),
    events_read = events_read + %(count)s,
    error = '', errors_in_row = 0, backoff_until = NULL,
    lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_GUARD} AND epoch = %(epoch)s AND next_number IS NOT DISTINCT FROM %(next_number)s
"""
_FAIL = f"""
UPDATE builds_poller
SET error = %(error)s, errors_in_row = errors_in_row + 1, lease_holder = '', lease_until = NULL,
    backoff_until = {clock.NOW} + make_interval(secs =>
        least(%(longest)s, %(first)s * power(2, least(errors_in_row, 20)))::double precision)
WHERE {_GUARD}
RETURNING errors_in_row, extract(epoch FROM backoff_until - {clock.NOW})::double precision
"""
_RELEASE = f"UPDATE builds_poller SET lease_holder = '', lease_until = NULL WHERE {_GUARD}"


@dataclass(slots=True)
class Turn:
    """Where the log is read from now; `next_number` is None before the first contact."""

    id: int
    name: str
    holder: str
    epoch: int
    next_number: int | None

    @classmethod
    def take(cls, name: str, holder: str) -> "Turn":
        """Take the turn, or raise NotNow. `holder` is `<job>.<claim>`.

        A job whose worker died takes its own turn over at once when it is claimed again: the
        earlier claim can settle and record nothing any more.
        """
        Poller.objects.get_or_create(name=name)
        rows = _execute(_TAKE, {"name": name, "holder": holder, "lease": lease_seconds()})
        if not rows:
            raise NotNow(_why_not(Poller.objects.get(name=name)))
        return cls(rows[0][0], name, holder, rows[0][1], rows[0][2])

    @property
    def source(self) -> str:
        return f"obs:{self.name}:{self.epoch}"

    def renew(self) -> None:
        """Give a sign of life; raise TurnLost if it comes too late."""
        if not _execute(_RENEW + " RETURNING id", self._guard()):
            raise TurnLost(f"another reads the log of {self.name} now")

    def advance(
        self,
        to: int,
        events: Sequence[NewEvent] = (),
        *,
        epoch: int | None = None,
        end: int | None = None,
        last_event_at: datetime | None = None,
    ) -> int:
        """Record events and move the cursor to number `to`, both or neither.

        `end` is the log's end, as far as known. Returns how many of the events were new.
        """
        values = self._guard() | {
            "to_epoch": self.epoch if epoch is None else epoch,
            "to_number": to,
            "epoch": self.epoch,
            "next_number": self.next_number,
            "end": to if end is None else end,
            "last_event_at": last_event_at,
            "count": len(events),
        }
        with transaction.atomic():
            if not _execute(_ADVANCE + " RETURNING id", values):
                raise TurnLost(f"another reads the log of {self.name} now")
            recorded = record(events)
        self.epoch, self.next_number = values["to_epoch"], to
        return len(recorded)

    def fail(self, error: str) -> float:
        """Count a failed read and give the turn back; return the seconds until the next try.

        They double from OBS_POLL_SECONDS to five minutes. The cursor stays.
        """
        values = self._guard() | {
            "error": error[:1000].replace("\0", "\ufffd"),
            "first": float(settings.OBS_POLL_SECONDS),
            "longest": LONGEST_BACKOFF,
        }
        rows = _execute(_FAIL, values)
        return float(rows[0][1]) if rows else 0.0

    def release(self) -> None:
        """Give the turn back."""
        _execute(_RELEASE + " RETURNING id", self._guard())

    def _guard(self) -> dict[str, Any]:
        return {"id": self.id, "holder": self.holder, "lease": lease_seconds()}


def _execute(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values | clock.params())
        return list(cursor.fetchall())


def _why_not(poller: Poller) -> str:
    if poller.backoff_until and poller.backoff_until > clock.now():
        return f"left alone until {poller.backoff_until:%H:%M:%S} after: {poller.error}"
    return f"job {poller.lease_holder.split('.')[0]} reads the log of {poller.name}"
