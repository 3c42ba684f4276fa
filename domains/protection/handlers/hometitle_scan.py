"""Scan the public records of an account's properties for changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async

from tailrace.db.query import database_now
from tailrace.domains.protection.models import WatchedProperty
from tailrace.domains.protection.services.properties.due import due
from tailrace.domains.protection.services.properties.save import MAX_DOCUMENTS, save
from tailrace.domains.protection.services.properties.watch import place_of
from tailrace.domains.protection.services.providers.deeds import DeedSource, sources
from tailrace.jobs.destinations.source_errors import SourceAway, SourceBusy, SourceRefuses
from tailrace.jobs.handler import ClaimedJob, Handler, Permanent, Retry, Skip, Snooze
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans.payload import AccountPayload

MOST_FAILURES = 3
"""Properties in a row that could not be read, after which the source counts as unavailable."""


@dataclass(slots=True)
class _Tally:
    """The results of the job's properties."""

    scanned: int = 0
    changes: int = 0
    alerts: int = 0
    errors: list[str] = field(default_factory=list)
    failed_in_a_row: int = 0


class ScanHomeTitles(Handler):
    """Compare the public records of an account's properties with the last scan.

    A job scans at most 100 properties and enqueues other jobs for the rest.
    """

    name = "protection.hometitle_scan"
    fair = True
    request_permission = "tailrace_jobs.add_job"

    class Payload(AccountPayload):
        after: int = 0
        """Scan the properties with ids greater than this."""
        run: int | None = None
        """The job that began the run; None: this job."""
        concerned: bool = False
        """Scan only the properties that a change feed has named."""

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        return str(payload["account"])

    async def handle(self, job: ClaimedJob) -> Any:
        by_name = sources()
        if not by_name:
            raise Permanent("no source of deeds is configured: set PROTECTION_SODA_URL")
        todo = await sync_to_async(due)(job)
        tally = _Tally(scanned=todo.total - len(todo.ids))
        for id in todo.ids:
            await self._check(job, tally, todo.total)
            await self._scan(job.payload.account, id, todo.run, by_name, tally)
            if tally.failed_in_a_row >= MOST_FAILURES:
                break
        if tally.errors:
            raise Retry(
                f"{tally.scanned} of {todo.total} properties scanned; errors:"
                f" {len(tally.errors)}, the last one: {tally.errors[-1]}"
            )
        return {"properties": todo.total, "changes": tally.changes, "alerts": tally.alerts}

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
        try:
            reading = await source.read(place_of(row), MAX_DOCUMENTS)
        except SourceBusy as error:
            raise Snooze(str(error), seconds=error.after) from None
        except SourceRefuses as error:
            raise Permanent(str(error)) from None
        except SourceAway as error:
            if not error.was_asked and not tally.errors:  # the breaker was already open
                raise Snooze(str(error), seconds=error.after or 60) from None
            tally.errors.append(str(error))
            tally.failed_in_a_row += MOST_FAILURES if error.after is not None else 1
            return
        saved = await sync_to_async(save)(row, reading, began=began, run=run)
        tally.failed_in_a_row = 0
        if saved is not None:
            tally.scanned += 1
            tally.changes += saved.changes
            tally.alerts += saved.alerts


def _row(account: int, id: int) -> tuple[WatchedProperty | None, datetime]:
    return WatchedProperty.objects.filter(user=account, pk=id).first(), database_now()
