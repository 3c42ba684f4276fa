"""Read a backend's notification log page by page, and handle gaps in it and replaced logs."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
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
"""Time after which `read` stops although the log has more entries."""
SMALLEST_SLACK = 500
"""Minimum number of entries before its own position that another reader leaves in the log."""
NEAR_SLACK = SMALLEST_SLACK // 2
"""Number of unread entries from which a warning is logged and shown."""


@dataclass(slots=True)
class LogReader:
    """Reads from the cursor to the end of the log, for at most MAX_SECONDS.

    Each read begins with the last entry that was read before. If it has changed, the log was cut,
    restored or replaced: only entries that the old log did not have are recorded, in a new epoch.
    """

    client: LogClient
    lease: PollLease
    between_pages: Callable[[], None] = lambda: None
    """Called between two pages. It stops the read by raising an exception."""
    events: int = 0
    pages: int = 0
    end: int | None = None
    _last: tuple[int, bytes | None] = (0, None)
    """Number and digest of the entry before the cursor, as far as they were looked up."""

    def read(self) -> bool:
        """Read from the cursor; return whether the log has more entries. Each page is committed
        together with the cursor. Raises BackendError, PollLeaseLost, or as `between_pages` does."""
        deadline = time.monotonic() + MAX_SECONDS
        if self.lease.next_number is None:
            self._begin()
        may_wait = settings.OBS_LONG_POLL
        while True:
            more = self._read_page(deadline)
            if not more:
                # The blocking read comes second, because on a log that was cut it would not return.
                if not may_wait or self.events or not self.client.wait(self.cursor):
                    return False
                may_wait = False
                self.lease.renew()
            elif time.monotonic() > deadline:
                return True
            self.between_pages()

    @property
    def cursor(self) -> int:
        """The number of the next entry to read."""
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
            if not self._is_same_log(page):
                self._restart()
                return True
            self._record(page)
            for page in pages:  # the other parts of a big page
                if time.monotonic() > deadline:
                    return True
                self.between_pages()
                self._record(page)
        return page.limit_reached

    def _read_without_check(self) -> bool:
        """Read from the cursor, if another reader has pruned the entry before it."""
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

    def _is_same_log(self, page: Page) -> bool:
        """Return whether the page is from the same log as the entries that were read before."""
        if self.cursor == 1:
            return not page.is_reset
        if not page.notifications:
            return False
        return self._digest_before_cursor() in (None, page.notifications[0].digest)

    def _digest_before_cursor(self) -> bytes | None:
        """Return the digest of the last entry that was read; None if it is not stored."""
        if self._last[0] != self.cursor - 1:
            self._last = self.cursor - 1, log_parts.digest(self.lease.id, self.cursor - 1)
        return self._last[1]

    def _begin(self) -> None:
        """Set the cursor for the first read of the log."""
        end = self.client.end()
        start = settings.OBS_START or ("now" if settings.OBS_NOPRUNE else "oldest")
        first = end if start == "now" else self._first_retained(0, end)
        if start.isdecimal():
            first = min(max(first, int(start)), end)
        self.lease.begin(first, end, end if settings.OBS_PAST == "record" else None)
        log.info("poll.first_read", backend=self.lease.name, begins_at=first, end=end)

    def _record(self, page: Page) -> None:
        """Record the entries from the cursor on, and move the cursor behind them."""
        entries = [entry for entry in page.notifications if entry.number >= self.cursor]
        events = [to_event(entry, self.lease.source(entry.number)) for entry in entries]
        if page.limit_reached and self.end is None:
            self.end = page.next
            with suppress(BackendError):
                self.end = self.client.end()
        waiting = max(self.end or 0, page.next, self.cursor) - self.cursor
        if settings.OBS_NOPRUNE and waiting >= NEAR_SLACK and self.pages == 1:
            log.warning(
                "poll.near_slack", backend=self.lease.name, waiting=waiting, slack=SMALLEST_SLACK
            )
        times = [event.occurred_at for event in events if event.occurred_at]
        previous_is_known = page.start == self.cursor or self._digest_before_cursor() is not None
        self.events += self.lease.advance(
            page.next,
            events,
            entries=entries if previous_is_known else page.notifications,
            end=self.end,
            waiting=waiting,
            last_event_at=max(times, default=None),
        )
        if page.notifications:
            self._last = page.next - 1, page.notifications[-1].digest

    def _skip_gap(self, page: Page) -> None:
        """Continue at the first entry that still exists, and record the gap as an event."""
        gap_start = self.cursor
        first = self._first_retained(gap_start, page.next)
        event = NewEvent(
            SyncLost,
            {"backend": self.lease.name, "from": gap_start, "to": first},
            source=source_of(self.lease.name, self.lease.epoch),
            source_id=f"lost:{gap_start}-{first}",
        )
        self.lease.advance(first, [event], end=page.next)
        log.warning("poll.sync_lost", backend=self.lease.name, first=gap_start, end=first)

    def _restart(self) -> None:
        """Continue after the last entry that is the same in the old and the new log."""
        end = self.client.end()
        last_common, difference_found = self._last_common_entry(end)
        if end >= self.cursor and not difference_found:
            raise self._log_changed_error()
        has_common = last_common is not None
        begins_at = self._first_retained(0, end) if last_common is None else last_common + 1
        epoch = self.lease.epoch + 1
        event = NewEvent(
            LogReset,
            {
                "backend": self.lease.name,
                "epoch": epoch,
                "was_at": self.cursor,
                "begins_at": begins_at,
                "end": end,
                "agreed": has_common,
            },
            source=source_of(self.lease.name, epoch),
            source_id="reset",
        )
        self.lease.restart(begins_at, event, end, keep_earlier=has_common)
        self.end, self._last = None, (0, None)
        log.warning(
            "poll.log_reset", backend=self.lease.name, epoch=epoch, begins_at=begins_at, end=end
        )

    def _last_common_entry(self, end: int) -> tuple[int | None, bool]:
        """Return the number of the last entry that is the same as when it was read (None if there
        is none), and whether an entry that differs was found. The search is a bisection."""
        last_common, difference_found = None, False
        low, high = 0, min(end, self.cursor) - 1
        while low < high:
            middle = (low + high + 1) // 2
            stored = log_parts.nearest(self.lease.id, middle)
            if stored is None or stored[0] <= low:
                low = middle
                continue
            number, digest = stored
            page = self.client.peek(number)
            if page.is_pruned:
                low = middle
            elif not page.notifications:
                raise self._log_changed_error()
            elif page.notifications[0].digest == digest:
                low, last_common = middle, number
            else:
                high, difference_found = number - 1, True
            self.lease.renew()
        return last_common, difference_found

    def _log_changed_error(self) -> BackendError:
        return BackendError(f"the log of {self.lease.name} changed during the search")

    def _first_retained(self, lost: int, end: int) -> int:
        """Return the first number that can be read, above `lost` and at most `end`. The bisection
        takes about 20 requests for a million entries, and does not prune the log."""
        retained = end
        while retained - lost > 1:
            # Most logs are complete, so try number 1 first.
            middle = 1 if lost == 0 else (lost + retained) // 2
            page = self.client.peek(middle)
            if page.is_reset:
                raise self._log_changed_error()
            lost, retained = (middle, retained) if page.is_pruned else (lost, middle)
            self.lease.renew()
        return retained
