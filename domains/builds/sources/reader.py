"""Reader: goes through a backend's log page by page, and over its gaps, during one turn."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.conf import settings

from domains.builds.event_types import LogReset, SyncLost
from domains.builds.sources.client import Backend
from domains.builds.sources.http import BackendError
from domains.builds.sources.page import Page
from domains.builds.sources.record import to_event
from domains.builds.sources.turn import Turn
from events.publish import NewEvent

log = structlog.get_logger(__name__)

TURN_SECONDS = 30.0
"""After this time a turn with more to read is handed over to the next job."""


@dataclass(slots=True)
class Reader:
    """Reads from the turn's cursor to the log's end, or until the time is up.

    The first contact with a backend begins at the first notification that it still retains, be
    the log empty, whole or pruned; nothing counts as lost, since nothing was read before.

    A log that ends before the cursor began anew: its numbers are used again, so its events get a
    new epoch in their source. A log that began anew and has grown past the cursor since the last
    read cannot be told from one that went on; the protocol does not say.
    """

    backend: Backend
    turn: Turn
    between: Callable[[], None] = lambda: None
    """Called between two pages; raises to stop."""
    events: int = 0
    pages: int = 0
    end: int | None = None

    def read(self) -> bool:
        """Read on; return whether more waits. Raises BackendError, TurnLost or what `between` does.

        Each page and the cursor behind it are committed together, before the next is asked for.
        """
        until = time.monotonic() + TURN_SECONDS
        if self.turn.next_number is None:
            self._begin()
        while self._step():
            if time.monotonic() > until:
                return True
            self.between()
        return False

    def _step(self) -> bool:
        """Take one page, or one hole; return whether to go on at once."""
        start = self.turn.next_number or 1
        block = settings.OBS_LONG_POLL and not self.pages
        page = self.backend.page(start, block=block)
        self.pages += 1
        if page is None:
            self.turn.advance(start)
            return False
        if page.is_reset:
            self._begin_anew(page)
            return True
        if page.is_pruned:
            self._skip_hole(page)
            return True
        self._take(page)
        return page.limit_reached

    def _begin(self) -> None:
        """Find where to start on the first contact."""
        end = self.backend.end()
        first = self._first_retained(0, end)
        self.turn.advance(first, end=end)
        log.info("poll.first_contact", backend=self.turn.name, begins_at=first, end=end)

    def _take(self, page: Page) -> None:
        """Record a page."""
        events = [to_event(one, self.turn.source) for one in page.notifications]
        if page.limit_reached and self.end is None:
            self.end = self.backend.end()
        times = [one.occurred_at for one in page.notifications if one.occurred_at]
        self.events += self.turn.advance(
            page.next, events, end=self.end, last_event_at=max(times, default=None)
        )

    def _skip_hole(self, page: Page) -> None:
        """Go on from the first notification that is still there, and record what is not."""
        gone = self.turn.next_number or 1
        first = self._first_retained(gone, page.next)
        lost = NewEvent(
            SyncLost,
            {"backend": self.turn.name, "from": gone, "to": first},
            source=self.turn.source,
            source_id=f"lost:{gone}-{first}",
        )
        self.turn.advance(first, [lost], end=page.next)
        log.warning("poll.sync_lost", backend=self.turn.name, first=gone, end=first)

    def _begin_anew(self, page: Page) -> None:
        """Go on with the log that took the place of the one that was read so far."""
        epoch = self.turn.epoch + 1
        first = self._first_retained(0, page.next)
        reset = NewEvent(
            LogReset,
            {
                "backend": self.turn.name,
                "epoch": epoch,
                "was_at": self.turn.next_number,
                "begins_at": first,
            },
            source=f"obs:{self.turn.name}:{epoch}",
            source_id="reset",
        )
        self.turn.advance(first, [reset], epoch=epoch, end=page.next)
        log.warning("poll.log_reset", backend=self.turn.name, epoch=epoch, begins_at=first)

    def _first_retained(self, gone: int, end: int) -> int:
        """Find the first number that can be read, above `gone` and at most `end`, by bisection.

        Asks once per halving, so about 20 times for a million notifications, and prunes nothing.
        """
        there = end
        while there - gone > 1:
            # Most logs are whole: their first number is looked at first.
            middle = 1 if gone == 0 else (gone + there) // 2
            page = self.backend.page(middle, noprune=True)
            if page is None or page.is_reset:
                raise BackendError(f"the log of {self.turn.name} changed while it was searched")
            gone, there = (middle, there) if page.is_pruned else (gone, middle)
            self.turn.renew()
        return there
