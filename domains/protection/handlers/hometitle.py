"""Scan the public records of properties for changes: the properties of an account, and the
properties that a change feed names."""

from collections import Counter
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
"""Properties in a row that a source could not read, after which it counts as unavailable."""
PAGES = 20
"""Pages of one feed that a call reads; then other jobs run."""
FORGOTTEN_AFTER = timedelta(days=2)
"""A feed that was not read for this time is read from its current end: the daily scans have read
the changes in between."""


@dataclass(slots=True)
class _Tally:
    """The progress of a job, and the sources that did not read all of its properties."""

    scanned: int = 0
    changes: int = 0
    alerts: int = 0
    errors: dict[str, list[RequestError]] = field(default_factory=dict)
    """The errors of each source that was asked and gave no answer, or refused the request."""
    waits: dict[str, RequestError] = field(default_factory=dict)
    """The sources that may not be asked now, with the reason."""
    failed_in_a_row: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False
    """Whether the job stops because its worker shuts down."""

    def is_stopped(self, source: str) -> bool:
        return source in self.waits or self.failed_in_a_row[source] >= MOST_FAILURES

    def add_error(self, source: str, error: RequestError) -> None:
        if isinstance(error, Unavailable | RequestRefused) and error.was_asked:
            self.errors.setdefault(source, []).append(error)
            is_away = isinstance(error, RequestRefused) or error.after is not None
            self.failed_in_a_row[source] += MOST_FAILURES if is_away else 1
        else:  # its breaker was open, or its rate limit used up
            self.waits[source] = error


class ScanHomeTitles(AccountHandler):
    """Compare the public records of an account's properties with the last scan.

    A job scans at most 100 properties and enqueues other jobs for the rest. A snoozed job would not
    know which source was unavailable. So if a source was unavailable, the job is retried with a
    counted attempt, and another job continues with the properties of the other sources.
    """

    name = due.SCAN
    plan_title = "Property records scan"
    time_limit = 600

    class Payload(AccountPayload):
        after: int = 0
        """Scan the properties with ids greater than this."""
        upto: int | None = None
        """Scan the properties with ids up to this. None: at most 100 properties."""
        run: int | None = None
        """The job that began the run; None: this job."""
        concerned: bool = False
        """Scan only the properties that a change feed has named."""
        sources: list[str] = []
        """The sources to read; empty: all sources."""

    async def handle(self, job: ClaimedJob) -> Any:
        by_name = sources()
        if not by_name:
            raise Permanent("no source of deeds is configured: set PROTECTION_SODA_URL")
        part = await sync_to_async(due.due)(job)
        tally = _Tally(scanned=part.total - len(part.properties))
        for id, source in part.properties.items():
            if tally.is_stopped(source):
                continue
            if job.shutting_down():
                tally.is_cut = True
                break
            await self._check(job, tally, part.total)
            await self._scan(job.payload.account, id, part.run, by_name, tally)
        if tally.errors or tally.waits or tally.is_cut:
            await self._continue_later(job, part, tally)
        return {"properties": part.total, "changes": tally.changes, "alerts": tally.alerts}

    async def _check(self, job: ClaimedJob, tally: _Tally, total: int) -> None:
        """Stop the job here if it has to stop. Stored properties stay and are not read again."""
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
            error = Unavailable(f"property {id}: the source {row.source} is not configured")
            tally.add_error(row.source, error)
            return
        place = Place(row.borough, row.block, row.lot, row.street_number, row.street_name, row.unit)
        try:
            reading = await source.read(place, MAX_DOCUMENTS)
        except RequestError as error:
            tally.add_error(row.source, error)
            return
        saved = await sync_to_async(save)(row, reading, began=began, run=run)
        tally.failed_in_a_row[row.source] = 0
        if saved is not None:
            tally.scanned += 1
            tally.changes += saved.changes
            tally.alerts += saved.alerts

    async def _continue_later(self, job: ClaimedJob, part: due.Part, tally: _Tally) -> None:
        """Raise the outcome of a job that has not scanned all of its properties."""
        others = set(part.properties.values()) if tally.is_cut else set(tally.waits)
        others -= tally.errors.keys()
        wait = 0.0
        if not tally.is_cut:
            wait = max([_wait_of(tally.waits[source]) for source in others], default=0.0)
        if not tally.errors:
            reasons = [] if tally.is_cut else [str(error) for error in tally.waits.values()]
            raise Snooze("; ".join(reasons) or "its worker is shutting down", seconds=wait)
        if others:
            await sync_to_async(due.continue_in_new_job)(job, part, sorted(others), wait)
        errors = [error for errors in tally.errors.values() for error in errors]
        refused = [error for error in errors if isinstance(error, RequestRefused)]
        if len(refused) == len(errors):
            raise Permanent(str(refused[0]))
        raise Retry(
            f"{tally.scanned} of {part.total} properties scanned; errors: {len(errors)}, the last"
            f" one: {errors[-1]}"
        )


def _row(account: int, id: int) -> tuple[WatchedProperty | None, datetime]:
    return WatchedProperty.objects.filter(user=account, pk=id).first(), database_now()


def _outcome_of(error: RequestError) -> Snooze | Permanent | Retry:
    """Return the outcome of a job whose source gave no answer."""
    if isinstance(error, RequestRefused):
        return Permanent(str(error))
    if error.was_asked:
        return Retry(str(error))
    return Snooze(str(error), seconds=_wait_of(error))


def _wait_of(error: RequestError) -> float:
    return 60 if error.after is None else error.after


class WatchDeeds(Handler):
    """Scan the properties of monitored accounts as soon as public records name them."""

    name = "protection.hometitle_monitor"
    schedule = Every(300)
    max_running = 1
    time_limit = 600

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
