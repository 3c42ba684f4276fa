"""Read the change feeds of public records, for accounts whose plan has monitoring."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.protection.handlers.hometitle_scan import ScanHomeTitles
from tailrace.domains.protection.models import DeedFeed
from tailrace.domains.protection.services.properties.due import (
    has_monitored_properties,
    mark_concerned,
)
from tailrace.domains.protection.services.providers.deeds import (
    DeedSource,
    FeedPage,
    Position,
    sources,
)
from tailrace.jobs.destinations.source_errors import SourceAway, SourceBusy, SourceRefuses
from tailrace.jobs.handler import ClaimedJob, Every, Handler, Permanent, Retry, Skip, Snooze

PAGES = 20
"""Pages of one feed that a call reads; then other jobs run."""
FORGOTTEN_AFTER = timedelta(days=2)
"""A feed that was not read for this time is read from its current end: the daily scans have read
the changes in between."""


class WatchDeeds(Handler):
    """Scan the properties of monitored accounts as soon as public records name them."""

    name = "protection.hometitle_monitor"
    schedule = Every(300)
    max_running = 1

    def schedule_keys(self) -> Sequence[str]:
        """Return no key while no source is configured."""
        return ("",) if sources() else ()

    async def handle(self, job: ClaimedJob) -> Any:
        properties = pages = 0
        more = False
        for source in sources().values():
            if not await sync_to_async(has_monitored_properties)(source.name):
                continue
            for feed in source.feeds:
                for _page in range(PAGES):
                    marked, more = await _read_page(source, feed)
                    properties, pages = properties + marked, pages + 1
                    if not more:
                        break
                if more:
                    raise Snooze(f"{feed}: {pages} pages read, more to read", seconds=1)
        if not pages:
            raise Skip("no account with monitoring watches a property")
        return {"pages": pages, "properties": properties}


async def _read_page(source: DeedSource, feed: str) -> tuple[int, bool]:
    """Read one page of a feed; return how many properties it names, and whether there are more
    pages."""
    position = await sync_to_async(_position)(source.name, feed)
    try:
        page = await source.changes(feed, position)
    except SourceBusy as error:
        raise Snooze(str(error), seconds=error.after) from None
    except SourceRefuses as error:
        raise Permanent(str(error)) from None
    except SourceAway as error:
        if not error.was_asked:
            raise Snooze(str(error), seconds=error.after or 60) from None
        raise Retry(str(error)) from None
    return await sync_to_async(_record)(source.name, feed, page), page.more


def _position(source: str, feed: str) -> Position:
    since = database_now() - FORGOTTEN_AFTER
    row = DeedFeed.objects.filter(name=f"{source}:{feed}", read_at__gt=since).first()
    return {} if row is None else row.position


def _record(source: str, feed: str, page: FeedPage) -> int:
    """Store the feed's position and enqueue scans of the named properties, in one transaction."""
    with transaction.atomic():
        properties = mark_concerned(page.place_keys, source, ScanHomeTitles.name)
        DeedFeed.objects.update_or_create(
            name=f"{source}:{feed}",
            defaults={"position": dict(page.position), "read_at": database_now()},
        )
    return properties
