"""Read a backend's notification log page by page, and handle its gaps and resets."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.conf import settings

from domains.builds.backends.client import BackendError
from domains.builds.event_types.source_problems import LogReset, SyncLost
from domains.builds.sources.log_client import LogClient
from domains.builds.sources.log_page import Page
from domains.builds.sources.poll_lease import PollLease
from domains.builds.sources.record import to_event
from events.publish import NewEvent

log = structlog.get_logger(__name__)

MAX_SECONDS = 30.0
"""After this time a job that has more to read leaves the rest to the next job."""


@dataclass(slots=True)
class LogReader:
    """Reads from the cursor to the log's end, or until the time is up.

    The first read of a backend begins at the first notification that the log still contains;
    nothing counts as lost, since nothing was read before.

    A log that ends before the cursor was reset: its numbers are used again, so its events get a
    new epoch in their source. A log that was reset and has grown past the cursor since the last
    read cannot be detected; the protocol gives no sign of it.
    """

    client: LogClient
    lease: PollLease
    between_pages: Callable[[], None] = lambda: None
    """Called between two pages; raises to stop."""
    events: int = 0
    pages: int = 0
    end: int | None = None

    def read(self) -> bool:
        """Read on; return whether there is more to read.

        Each page is committed together with the cursor before the next page is requested. Raises
        BackendError, PollLeaseLost or what `between_pages` raises.
        """
        deadline = time.monotonic() + MAX_SECONDS
        if self.lease.next_number is None:
            self._begin()
        while self._step():
            if time.monotonic() > deadline:
                return True
            self.between_pages()
        return False

    def _step(self) -> bool:
        """Read one page, or record one gap; return whether to continue at once."""
        start = self.lease.next_number or 1
        block = settings.OBS_LONG_POLL and not self.pages
        page = self.client.page(start, block=block)
        self.pages += 1
        if page is None:
            self.lease.advance(start)
            return False
        if page.is_reset:
            self._restart(page)
            return True
        if page.is_pruned:
            self._skip_gap(page)
            return True
        self._record(page)
        return page.limit_reached

    def _begin(self) -> None:
        """Find where to start at the first read."""
        end = self.client.end()
        first = self._first_retained(0, end)
        self.lease.advance(first, end=end)
        log.info("poll.first_read", backend=self.lease.name, begins_at=first, end=end)

    def _record(self, page: Page) -> None:
        events = [to_event(notification, self.lease.source) for notification in page.notifications]
        if page.limit_reached and self.end is None:
            self.end = self.client.end()
        times = [event.occurred_at for event in events if event.occurred_at]
        self.events += self.lease.advance(
            page.next, events, end=self.end, last_event_at=max(times, default=None)
        )

    def _skip_gap(self, page: Page) -> None:
        """Continue at the first notification that still exists, and record what is lost."""
        lost = self.lease.next_number or 1
        first = self._first_retained(lost, page.next)
        event = NewEvent(
            SyncLost,
            {"backend": self.lease.name, "from": lost, "to": first},
            source=self.lease.source,
            source_id=f"lost:{lost}-{first}",
        )
        self.lease.advance(first, [event], end=page.next)
        log.warning("poll.sync_lost", backend=self.lease.name, first=lost, end=first)

    def _restart(self, page: Page) -> None:
        """Continue with the new log that replaced the one that was read so far."""
        epoch = self.lease.epoch + 1
        first = self._first_retained(0, page.next)
        event = NewEvent(
            LogReset,
            {
                "backend": self.lease.name,
                "epoch": epoch,
                "was_at": self.lease.next_number,
                "begins_at": first,
            },
            source=f"obs:{self.lease.name}:{epoch}",
            source_id="reset",
        )
        self.lease.advance(first, [event], epoch=epoch, end=page.next)
        log.warning("poll.log_reset", backend=self.lease.name, epoch=epoch, begins_at=first)

    def _first_retained(self, lost: int, end: int) -> int:
        """Find the first number that can be read, above `lost` and at most `end`, by bisection.

        It takes about 20 requests for a million notifications, and prunes nothing.
        """
        retained = end
        while retained - lost > 1:
            # Most logs are complete, so their first number is tried first.
            middle = 1 if lost == 0 else (lost + retained) // 2
            page = self.client.page(middle, noprune=True)
            if page is None or page.is_reset:
                raise BackendError(f"the log of {self.lease.name} changed during the search")
            lost, retained = (middle, retained) if page.is_pruned else (lost, middle)
            self.lease.renew()
        return retained
