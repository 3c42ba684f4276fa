"""The lease on a backend's poller: only its holder may read the log and move the cursor.

A guarded UPDATE takes the lease; no lock is held during a request. Each step that moves the cursor
checks the holder and the old position, in the transaction that records the events. So a job that
lost its lease records nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.domains.builds.backends.origin import source_of
from tailrace.domains.builds.models import Poller
from tailrace.domains.builds.sources import log_parts
from tailrace.domains.builds.sources.log_client import BLOCK_SECONDS
from tailrace.domains.builds.sources.log_page import Notification
from tailrace.domains.builds.sources.record import record
from tailrace.events.publish import NewEvent

SPARE_SECONDS = 15
"""Difference between the duration of a lease and the longest request."""
MAX_BACKOFF_SECONDS = 300.0


class LeaseNotAvailable(Exception):
    """Another job holds the lease, or the backend is not read for a while after an error."""


class PollLeaseLost(Exception):
    """The lease expired and another job took it. The entries of the last page are not recorded."""


def lease_seconds() -> float:
    """Return the duration of a lease that is not renewed, in seconds."""
    # A request may take OBS_TIMEOUT_SECONDS until its answer begins, and as long until it ends.
    block = BLOCK_SECONDS if settings.OBS_LONG_POLL else 0
    return 2.0 * settings.OBS_TIMEOUT_SECONDS + block + SPARE_SECONDS


_ACQUIRE = f"""
UPDATE tailrace_builds_poller
SET lease_holder = %(holder)s, lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE name = %(name)s
  AND (backoff_until IS NULL OR backoff_until <= {clock.NOW})
  AND (lease_until IS NULL OR lease_until <= {clock.NOW}
       OR split_part(lease_holder, '.', 1) = split_part(%(holder)s, '.', 1))
RETURNING id, epoch, next_number, past_until
"""
_IS_HELD = "id = %(id)s AND lease_holder = %(holder)s"
_RENEW = f"""
UPDATE tailrace_builds_poller SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_IS_HELD}
"""
_ADVANCE = f"""
UPDATE tailrace_builds_poller
SET epoch = %(new_epoch)s, next_number = %(new_number)s, past_until = %(past_until)s,
    waiting = coalesce(%(waiting)s, waiting), polled_at = {clock.NOW},
    end_seen = greatest(%(end)s, %(new_number)s),
    last_event_at = coalesce(%(last_event_at)s, last_event_at),
    events_read = events_read + %(count)s,
    error = '', errors_in_row = 0, backoff_until = NULL,
    lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
WHERE {_IS_HELD} AND epoch = %(epoch)s AND next_number IS NOT DISTINCT FROM %(next_number)s
"""
_FAIL = f"""
UPDATE tailrace_builds_poller
SET error = %(error)s, errors_in_row = errors_in_row + 1, lease_holder = '', lease_until = NULL,
    backoff_until = {clock.NOW} + make_interval(secs =>
        least(%(longest)s, %(first)s * power(2, least(errors_in_row, 20)))::double precision)
WHERE {_IS_HELD}
RETURNING extract(epoch FROM backoff_until - {clock.NOW})::double precision
"""


@dataclass(slots=True)
class PollLease:
    """A lease that this job holds, with the position of the cursor. `next_number` is None before
    the first read."""

    id: int
    name: str
    holder: str
    epoch: int
    next_number: int | None
    past_until: int | None = None
    """Entries below this number are from before the first read. Their events are only recorded."""

    @classmethod
    def acquire(cls, name: str, holder: str) -> "PollLease":
        """Take the lease, or raise LeaseNotAvailable. `holder` is `<job>.<claim>`.

        A job that is claimed again takes over its own lease: the earlier claim can no longer settle
        the job or record events.
        """
        Poller.objects.get_or_create(name=name)
        rows = query(_ACQUIRE, name=name, holder=holder, lease=lease_seconds())
        if not rows:
            raise LeaseNotAvailable(_unavailable_reason(Poller.objects.get(name=name)))
        id, *position = rows[0]
        return cls(id, name, holder, *position)

    def source(self, number: int) -> str:
        """Return the source of the event for the entry with this number."""
        return source_of(self.name, self.epoch, past=number < (self.past_until or 0))

    def renew(self) -> None:
        """Extend the lease; raise PollLeaseLost if another job has taken it."""
        self._execute(_RENEW, lease=lease_seconds())

    def advance(
        self,
        number: int,
        events: Sequence[NewEvent] = (),
        *,
        entries: Sequence[Notification] = (),
        end: int | None = None,
        waiting: int | None = None,
        last_event_at: datetime | None = None,
    ) -> int:
        """Record the events and move the cursor to `number` in one transaction, and store the
        digests of `entries`. Return the number of events that were not recorded before.

        `end` is the end of the log, if known; `waiting` counts the entries unread before this step.
        """
        with transaction.atomic():
            self._move_cursor(
                number, self.epoch, len(events), end, waiting=waiting, last_event_at=last_event_at
            )
            log_parts.add(self.id, entries)
            recorded = record(events)
        self.next_number = number
        return len(recorded)

    def begin(self, number: int, end: int, past_until: int | None) -> None:
        """Set the cursor for the first read. Events of entries below `past_until` are quiet."""
        self.past_until = past_until
        self._move_cursor(number, self.epoch, 0, end)
        self.next_number = number

    def restart(self, number: int, event: NewEvent, end: int, *, keep_earlier: bool) -> None:
        """Record `event`, and continue with a new log at `number`, in a new epoch. All digests are
        deleted; with `keep_earlier`, only those from `number` on."""
        with transaction.atomic():
            self.past_until = None
            self._move_cursor(number, self.epoch + 1, 1, end)
            log_parts.forget(self.id, number if keep_earlier else 0)
            record([event])
        self.epoch, self.next_number = self.epoch + 1, number

    def _move_cursor(
        self, number: int, epoch: int, count: int, end: int | None, **values: Any
    ) -> None:
        self._execute(
            _ADVANCE,
            new_epoch=epoch,
            new_number=number,
            epoch=self.epoch,
            next_number=self.next_number,
            past_until=self.past_until,
            end=number if end is None else end,
            count=count,
            lease=lease_seconds(),
            **({"waiting": None, "last_event_at": None} | values),
        )

    def fail(self, error: str) -> float:
        """Count a failed read and release the lease; return the seconds until the next attempt,
        which double with each failure, from OBS_POLL_SECONDS up to five minutes."""
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
        """Release the lease, if this job still holds it."""
        held = Poller.objects.filter(pk=self.id, lease_holder=self.holder)
        held.update(lease_holder="", lease_until=None)

    def _execute(self, sql: str, **params: Any) -> None:
        if not execute(sql, id=self.id, holder=self.holder, **params):
            raise PollLeaseLost(f"another job reads the log of {self.name} now")


def _unavailable_reason(poller: Poller) -> str:
    if poller.backoff_until and poller.backoff_until > clock.now():
        until = f"{poller.backoff_until:%Y-%m-%d %H:%M:%S} UTC"
        return f"the log is not read until {until}, because of an error: {poller.error}"
    return f"job {poller.lease_holder.split('.')[0]} reads the log of {poller.name}"
