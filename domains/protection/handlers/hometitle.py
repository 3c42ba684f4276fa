"""Scan the public records of properties for changes: of an account, and of the properties that a
change feed names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.models import DeedFeed, WatchedProperty
from tailrace.domains.protection.services.properties import due
from tailrace.domains.protection.services.properties.places import Place
from tailrace.domains.protection.services.properties.save import MAX_DOCUMENTS, save
from tailrace.domains.protection.services.providers.deeds import (
    DeedSource,
    FeedPage,
    Position,
    sources,
)
from tailrace.jobs.destinations.request_errors import RequestError, RequestRefused, Unavailable
from tailrace.jobs.handler import ClaimedJob, Every, Handler, Permanent, Retry, Skip, Snooze
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans.payload import AccountPayload

MOST_FAILURES = 3
"""Properties in a row that could not be read, after which the source counts as unavailable."""
PAGES = 20
"""Pages of one feed that a call reads; then other jobs run."""
FORGOTTEN_AFTER = timedelta(days=2)
"""A feed that was not read for this time is read from its current end: the daily scans have read
the changes in between."""


@dataclass(slots=True)
class _Tally:
    scanned: int = 0
    changes: int = 0
    alerts: int = 0
    errors: list[str] = field(default_factory=list)
    failed_in_a_row: int = 0


class ScanHomeTitles(AccountHandler):
    """Compare the public records of an account's properties with the last scan.

    A job scans at most 100 properties and enqueues other jobs for the rest.
    """

    name = due.SCAN

    class Payload(AccountPayload):
        after: int = 0
        """Scan the properties with ids greater than this."""
        run: int | None = None
        """The job that began the run; None: this job."""
        concerned: bool = False
        """Scan only the properties that a change feed has named."""

    async def handle(self, job: ClaimedJob) -> Any:
        by_name = sources()
        if not by_name:
            raise Permanent("no source of deeds is configured: set PROTECTION_SODA_URL")
        run, scanned_by = await sync_to_async(due.due)(job)
        total, ids = len(scanned_by), [id for id, last in scanned_by.items() if last != run]
        tally = _Tally(scanned=total - len(ids))
        for id in ids:
            await self._check(job, tally, total)
            await self._scan(job.payload.account, id, run, by_name, tally)
            if tally.failed_in_a_row >= MOST_FAILURES:
                break
        if tally.errors:
            raise Retry(
                f"{tally.scanned} of {total} properties scanned; errors:"
                f" {len(tally.errors)}, the last one: {tally.errors[-1]}"
            )
        return {"properties": total, "changes": tally.changes, "alerts": tally.alerts}

    async def _check(self, job: ClaimedJob, tally: _Tally, total: int) -> None:
        """Stop the job here if it has to stop. Stored properties stay and are not read again."""
        if job.shutting_down():
            raise Snooze("its worker is shutting down", seconds=0)
        await job.acheck_cancelled()
        if not await sync_to_async(PlanSubscription.objects.serves)(job.payload.account):
            raise Skip(f"account {job.payload.account} has no active plan")
        await job.aprogress(tally.scanned, total)

    async def _scan(
        self, account: int, id: int, run: int, by_name: Mapping[str, DeedSource], tally: _Tally
    ) -> None:
        row, began = await sync_to_async(_row)(account, id)
        if row is None:  # the property was removed
            return
        source = by_name.get(row.source)
        if source is None:
            tally.errors.append(f"property {id}: the source {row.source} is not configured")
            return
        place = Place(row.borough, row.block, row.lot, row.street_number, row.street_name, row.unit)
        try:
            reading = await source.read(place, MAX_DOCUMENTS)
        except Unavailable as error:
            if not error.was_asked and not tally.errors:  # the breaker was already open
                raise _outcome_of(error) from None
            tally.errors.append(str(error))
            tally.failed_in_a_row += MOST_FAILURES if error.after is not None else 1
            return
        except RequestError as error:
            raise _outcome_of(error) from None
        saved = await sync_to_async(save)(row, reading, began=began, run=run)
        tally.failed_in_a_row = 0
        if saved is not None:
            tally.scanned += 1
            tally.changes += saved.changes
            tally.alerts += saved.alerts


def _row(account: int, id: int) -> tuple[WatchedProperty | None, datetime]:
    return WatchedProperty.objects.filter(user=account, pk=id).first(), database_now()


def _outcome_of(error: RequestError) -> Snooze | Permanent | Retry:
    """Return the outcome of a job whose source gave no answer."""
    if isinstance(error, RequestRefused):
        return Permanent(str(error))
    if error.was_asked:
        return Retry(str(error))
    return Snooze(str(error), seconds=60 if error.after is None else error.after)


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
            if not await sync_to_async(due.has_monitored_properties)(source.name):
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
    """Read a page of a feed; return how many properties it names, and whether more pages follow."""
    position = await sync_to_async(_position)(source.name, feed)
    try:
        page = await source.changes(feed, position)
    except RequestError as error:
        raise _outcome_of(error) from None
    return await sync_to_async(_record)(source.name, feed, page), page.more


def _position(source: str, feed: str) -> Position:
    since = database_now() - FORGOTTEN_AFTER
    row = DeedFeed.objects.filter(name=f"{source}:{feed}", read_at__gt=since).first()
    return {} if row is None else row.position


def _record(source: str, feed: str, page: FeedPage) -> int:
    """Store the feed's position and enqueue scans of the named properties, in one transaction."""
    with transaction.atomic():
        properties = due.mark_concerned(page.place_keys, source)
        DeedFeed.objects.update_or_create(
            name=f"{source}:{feed}",
            defaults={"position": dict(page.position), "read_at": database_now()},
        )
    return properties
