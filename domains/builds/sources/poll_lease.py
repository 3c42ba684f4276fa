"""The right to read one backend's log and to move its cursor. Only one job has it at a time.

It is a lease on the poller's row, taken by a guarded UPDATE. No lock is held during a request.
Each step that moves the cursor checks the holder and the cursor's old position, in the transaction
that records the events. So a job that lost its lease records nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from db import clock
from db.query import execute, query
from domains.builds.models import Poller
from domains.builds.sources.log_client import BLOCK_SECONDS
from domains.builds.sources.record import record
from events.publish import NewEvent

SPARE_SECONDS = 15
"""How much longer the lease is than the longest request."""
MAX_BACKOFF_SECONDS = 300.0


class LeaseNotAvailable(Exception):
    """Another job holds the lease, or the backend is not read for a while after an error."""


class PollLeaseLost(Exception):
    """The lease expired and another job took it. What was read is not recorded."""


def lease_seconds() -> float:
    """Return how long a lease lasts if it is not renewed."""
    longest_request = float(settings.OBS_TIMEOUT_SECONDS)
    longest_request += BLOCK_SECONDS if settings.OBS_LONG_POLL else 0
    return longest_request + SPARE_SECONDS


_ACQUIRE = f"""
UPDATE builds_poller
SET lease_holder = %(holder)s, lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE name = %(name)s
  AND (backoff_until IS NULL OR backoff_until <= {clock.NOW})
  AND (lease_until IS NULL OR lease_until <= {clock.NOW}
       OR split_part(lease_holder, '.', 1) = split_part(%(holder)s, '.', 1))
RETURNING id, epoch, next_number
"""
_HELD = "id = %(id)s AND lease_holder = %(holder)s"
_RENEW = f"""
UPDATE builds_poller SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_HELD}
"""
_ADVANCE = f"""
UPDATE builds_poller
SET epoch = %(new_epoch)s, next_number = %(new_number)s, polled_at = {clock.NOW},
    end_seen = greatest(%(end)s, %(new_number)s),
    last_event_at = coalesce(%(last_event_at)s, last_event_at),
    events_read = events_read + %(count)s,
    error = '', errors_in_row = 0, backoff_until = NULL,
    lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_HELD} AND epoch = %(epoch)s AND next_number IS NOT DISTINCT FROM %(next_number)s
"""
_FAIL = f"""
UPDATE builds_poller
SET error = %(error)s, errors_in_row = errors_in_row + 1, lease_holder = '', lease_until = NULL,
    backoff_until = {clock.NOW} + make_interval(secs =>
        least(%(longest)s, %(first)s * power(2, least(errors_in_row, 20)))::double precision)
WHERE {_HELD}
RETURNING extract(epoch FROM backoff_until - {clock.NOW})::double precision
"""
_RELEASE = f"UPDATE builds_poller SET lease_holder = '', lease_until = NULL WHERE {_HELD}"


@dataclass(slots=True)
class PollLease:
    """A held lease, with the cursor's position; `next_number` is None before the first read."""

    id: int
    name: str
    holder: str
    epoch: int
    next_number: int | None

    @classmethod
    def acquire(cls, name: str, holder: str) -> "PollLease":
        """Take the lease, or raise LeaseNotAvailable. `holder` is `<job>.<claim>`.

        A job whose worker died takes its own lease over at once when it is claimed again: the
        earlier claim can neither settle nor record anything any more.
        """
        Poller.objects.get_or_create(name=name)
        rows = query(_ACQUIRE, name=name, holder=holder, lease=lease_seconds())
        if not rows:
            raise LeaseNotAvailable(_reason(Poller.objects.get(name=name)))
        id, epoch, next_number = rows[0]
        return cls(id, name, holder, epoch, next_number)

    @property
    def source(self) -> str:
        return f"obs:{self.name}:{self.epoch}"

    def renew(self) -> None:
        """Extend the lease; raise PollLeaseLost if another job has taken it."""
        self._execute(_RENEW, lease=lease_seconds())

    def advance(
        self,
        number: int,
        events: Sequence[NewEvent] = (),
        *,
        epoch: int | None = None,
        end: int | None = None,
        last_event_at: datetime | None = None,
    ) -> int:
        """Record the events and move the cursor to `number` in one transaction.

        `end` is the log's end, as far as known. Return how many of the events were new.
        """
        new_epoch = self.epoch if epoch is None else epoch
        with transaction.atomic():
            self._execute(
                _ADVANCE,
                new_epoch=new_epoch,
                new_number=number,
                epoch=self.epoch,
                next_number=self.next_number,
                end=number if end is None else end,
                last_event_at=last_event_at,
                count=len(events),
                lease=lease_seconds(),
            )
            recorded = record(events)
        self.epoch, self.next_number = new_epoch, number
        return len(recorded)

    def fail(self, error: str) -> float:
        """Count a failed read and release the lease; return the seconds until the next try.

        They double from OBS_POLL_SECONDS up to five minutes. The cursor does not move.
        """
        rows = query(
            _FAIL,
            id=self.id,
            holder=self.holder,
            error=error[:1000].replace("\0", "\ufffd"),
            first=float(settings.OBS_POLL_SECONDS),
            longest=MAX_BACKOFF_SECONDS,
        )
        return float(rows[0][0]) if rows else 0.0

    def release(self) -> None:
        """Give the lease back, if it is still held."""
        execute(_RELEASE, id=self.id, holder=self.holder)

    def _execute(self, sql: str, **params: Any) -> None:
        if not execute(sql, id=self.id, holder=self.holder, **params):
            raise PollLeaseLost(f"another job reads the log of {self.name} now")


def _reason(poller: Poller) -> str:
    if poller.backoff_until and poller.backoff_until > clock.now():
        return f"not read until {poller.backoff_until:%H:%M:%S} after an error: {poller.error}"
    return f"job {poller.lease_holder.split('.')[0]} reads the log of {poller.name}"
