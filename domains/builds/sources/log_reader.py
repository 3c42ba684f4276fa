"""Read a backend's notification log page by page, and handle its gaps and resets."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import structlog
from django.conf import settings

from tailrace.domains.builds.backends.client import BackendError
from tailrace.domains.builds.backends.origin import source_of
from tailrace.domains.builds.event_types.source_problems import LogReset, SyncLost
from tailrace.domains.builds.sources import log_parts
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.domains.builds.sources.log_page import Page
from tailrace.domains.builds.sources.poll_lease import PollLease
from tailrace.domains.builds.sources.record import to_event
from tailrace.events.publish import NewEvent

log = structlog.get_logger(__name__)

MAX_SECONDS = 30.0
"""After this time a job that has more to read leaves the rest to the next job."""
SMALLEST_SLACK = 500
"""Entries that a reader beside us leaves in the log, behind where it reads, at least."""
NEAR_SLACK = SMALLEST_SLACK // 2
"""From so many entries on that wait to be read, a warning is logged and shown."""


@dataclass(slots=True)
class LogReader:
    """Reads from the cursor to the log's end, or until the time is up.

    Each read begins with the last entry that was read. If it is another one now, the log was cut,
    restored or replaced: what both logs have is not recorded again, and what is new is recorded in
    a new epoch, which is part of its events' source.
    """

    client: LogClient
    lease: PollLease
    between_pages: Callable[[], None] = lambda: None
    """Called between two pages; raises to stop."""
    events: int = 0
    pages: int = 0
    end: int | None = None
    _last: tuple[int, bytes | None] = (0, None)
    """Number and digest of the entry before the cursor, once they were looked up."""

    def read(self) -> bool:
        """Read on; return whether there is more to read.

        Each page is committed together with the cursor before the next page is requested. Raises
        BackendError, PollLeaseLost or what `between_pages` raises.
        """
        deadline = time.monotonic() + MAX_SECONDS
        if self.lease.next_number is None:
            self._begin()
        may_wait = settings.OBS_LONG_POLL
        while True:
            more = self._read_page(deadline)
            if not more:
                # A log that was cut would hold a blocking read for ever, so it comes second.
                if not may_wait or self.events or not self.client.wait(self.cursor):
                    return False
                may_wait = False
                self.lease.renew()
            elif time.monotonic() > deadline:
                return True
            self.between_pages()

    @property
    def cursor(self) -> int:
        """The number to read next."""
        return self.lease.next_number or 1

    def _read_page(self, deadline: float) -> bool:
        """Read one page, or record one gap; return whether to continue at once."""
        before = max(self.cursor - 1, 1)
        with closing(self.client.pages(before)) as pages:
            page = next(pages)
            self.pages += 1
            if page.is_pruned and before < self.cursor:
                return self._read_without_check()
            if page.is_pruned:
                self._skip_gap(page)
                return True
            if not self._continues(page):
                self._restart()
                return True
            self._record(page)
            for page in pages:  # the other parts, if it is a big one
                if time.monotonic() > deadline:
                    return True
                self.between_pages()
                self._record(page)
        return page.limit_reached

    def _read_without_check(self) -> bool:
        """Read from the cursor: the entry before it has been pruned, by another reader."""
        with closing(self.client.pages(self.cursor)) as pages:
            page = next(pages)
            if page.is_pruned:
                self._skip_gap(page)
                return True
            if page.is_reset:
                self._restart()
                return True
            self._record(page)
        return page.limit_reached

    def _continues(self, page: Page) -> bool:
        """Return whether the page is from the log that was read so far."""
        if self.cursor == 1:
            return not page.is_reset
        if not page.notifications:
            return False
        entry = page.notifications[0]
        known = self._digest_before_cursor()
        return known is None or known == entry.digest

    def _digest_before_cursor(self) -> bytes | None:
        """Return the digest of the last entry that was read; None if it is not known."""
        number = self.cursor - 1
        if self._last[0] != number:
            self._last = number, log_parts.digest(self.lease.id, number)
        return self._last[1]

    def _begin(self) -> None:
        """Find where to start at the first read."""
        end = self.client.end()
        start = settings.OBS_START or ("now" if settings.OBS_NOPRUNE else "oldest")
        first = end if start == "now" else self._first_retained(0, end)
        if start.isdecimal():
            first = min(max(first, int(start)), end)
        self.lease.begin(first, end, end if settings.OBS_PAST == "record" else None)
        log.info("poll.first_read", backend=self.lease.name, begins_at=first, end=end)

    def _record(self, page: Page) -> None:
        """Record the entries from the cursor on, and move it behind them."""
        entries = [entry for entry in page.notifications if entry.number >= self.cursor]
        events = [to_event(entry, self.lease.source(entry.number)) for entry in entries]
        if page.limit_reached and self.end is None:
            self.end = self._end_after(page)
        waiting = max(max(self.end or 0, page.next) - self.cursor, 0)
        self._warn(waiting)
        times = [event.occurred_at for event in events if event.occurred_at]
        is_known = page.start == self.cursor or self._digest_before_cursor() is not None
        self.events += self.lease.advance(
            page.next,
            events,
            entries=entries if is_known else page.notifications,
            end=self.end,
            waiting=waiting,
            last_event_at=max(times, default=None),
        )
        if page.notifications:
            self._last = page.next - 1, page.notifications[-1].digest

    def _end_after(self, page: Page) -> int:
        """Return the log's end; if it cannot be asked for, what the page tells of it."""
        try:
            return self.client.end()
        except BackendError:
            return page.next

    def _warn(self, waiting: int) -> None:
        if settings.OBS_NOPRUNE and waiting >= NEAR_SLACK and self.pages == 1:
            log.warning(
                "poll.near_slack", backend=self.lease.name, waiting=waiting, slack=SMALLEST_SLACK
            )

    def _skip_gap(self, page: Page) -> None:
        """Continue at the first notification that still exists, and record what is lost."""
        lost = self.cursor
        first = self._first_retained(lost, page.next)
        event = NewEvent(
            SyncLost,
            {"backend": self.lease.name, "from": lost, "to": first},
            source=source_of(self.lease.name, self.lease.epoch),
            source_id=f"lost:{lost}-{first}",
        )
        self.lease.advance(first, [event], end=page.next)
        log.warning("poll.sync_lost", backend=self.lease.name, first=lost, end=first)

    def _restart(self) -> None:
        """Continue behind the last entry that the log has in common with what was read."""
        end = self.client.end()
        agreed, differs = self._last_agreed(end)
        if end >= self.cursor and not differs:
            raise self._changed()
        begins_at = self._first_retained(0, end) if agreed is None else agreed + 1
        epoch = self.lease.epoch + 1
        event = NewEvent(
            LogReset,
            {
                "backend": self.lease.name,
                "epoch": epoch,
                "was_at": self.cursor,
                "begins_at": begins_at,
                "end": end,
                "agreed": agreed is not None,
            },
            source=source_of(self.lease.name, epoch),
            source_id="reset",
        )
        self.lease.restart(begins_at, event, end, agreed=agreed is not None)
        self.end, self._last = None, (0, None)
        log.warning(
            "poll.log_reset", backend=self.lease.name, epoch=epoch, begins_at=begins_at, end=end
        )

    def _last_agreed(self, end: int) -> tuple[int | None, bool]:
        """Return the number of the last entry that is the same as when it was read, by bisection
        (None if there is none), and whether one that is not the same was seen."""
        agreed, differs = None, False
        low, high = 0, min(end, self.cursor) - 1
        while low < high:
            middle = (low + high + 1) // 2
            known = log_parts.nearest(self.lease.id, middle)
            if known is None or known[0] <= low:
                low = middle
                continue
            number, digest = known
            page = self.client.peek(number)
            if page.is_pruned:
                low = middle
            elif not page.notifications:
                raise self._changed()
            elif page.notifications[0].digest == digest:
                low, agreed = middle, number
            else:
                high, differs = number - 1, True
            self.lease.renew()
        return agreed, differs

    def _changed(self) -> BackendError:
        return BackendError(f"the log of {self.lease.name} changed during the search")

    def _first_retained(self, lost: int, end: int) -> int:
        """Find the first number that can be read, above `lost` and at most `end`, by bisection.

        It takes about 20 requests for a million notifications, and prunes nothing.
        """
        retained = end
        while retained - lost > 1:
            # Most logs are complete, so their first number is tried first.
            middle = 1 if lost == 0 else (lost + retained) // 2
            page = self.client.peek(middle)
            if page.is_reset:
                raise self._changed()
            lost, retained = (middle, retained) if page.is_pruned else (lost, middle)
            self.lease.renew()
        return retained
