"""Harvest a source: read its pages from its cursor on, on request or at its scheduled times."""

import time
from dataclasses import replace
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from pydantic import BaseModel, ValidationError

from tailrace.domains.records.event_types import SourceRequested
from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.formats import (
    BadPage,
    Page,
    SourceFormat,
    UnknownFormat,
    find_format,
)
from tailrace.domains.records.sources.requests import NotActive, request_pull
from tailrace.domains.records.sources.store import (
    ReadSource,
    SourceChanged,
    record_error,
    record_wait,
    store_page,
    wait_after,
)
from tailrace.events.publish import Recorded
from tailrace.events.publishing.validation import describe
from tailrace.jobs.destinations.request_errors import RequestError, RequestRefused
from tailrace.jobs.handler import ClaimedJob, Handler, Permanent, Skip, Snooze

log = structlog.get_logger(__name__)

TURN_SECONDS = 20.0
"""After this time, a job with more pages to read is snoozed, so that other jobs can run."""
ERRORS_TO_FAIL = 6
"""Errors in a row after which the job fails. The source is read again at its next request."""


class RequestSource(Handler):
    """Request that a source is read. Each active source has a schedule of this handler."""

    name = "records.request_source"

    class Payload(BaseModel):
        """The source's id."""

        source: int

    def handle(self, job: ClaimedJob) -> None:
        try:
            request_pull(job.payload.source)
        except NotActive as error:
            raise Skip(str(error)) from None


class PullFromSource(Handler):
    """Read the new records of a source, page by page, and submit them as depositions.

    Each page is stored together with the source's cursor, so a job that runs again continues after
    the last stored page. Errors of the source are counted in its row and charge the job no attempt.
    """

    name = "records.pull_from_source"
    on = [SourceRequested]
    ordered = True
    claim_timeout = 120
    time_limit = 600

    def lane(self, event: Recorded, routing_key: str) -> str:
        return str(event.payload.source)

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        return f"source/{event.payload.source}"

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        """Return the numbers of read and of submitted records."""
        event = job.require_event()
        requested: SourceRequested.Payload = event.payload
        source, form, settings = await sync_to_async(_load)(requested.source)
        ends_at = time.monotonic() + TURN_SECONDS
        submitted = 0
        while True:
            page = await _read(source, form, settings)
            try:
                stored = await sync_to_async(store_page)(source, page, event.id)
            except SourceChanged as error:
                raise Snooze(str(error), seconds=1) from None
            submitted += stored.submitted
            source = replace(source, cursor=page.cursor)
            await job.aprogress(stored.read, stored.total, f"{submitted} new or changed")
            if page.is_last:
                return {"read": stored.read, "submitted": submitted}
            if time.monotonic() > ends_at or job.shutting_down():
                raise Snooze(f"{stored.read} records read; more pages follow", seconds=0)
            await job.acheck_cancelled()


def _load(id: int) -> tuple[ReadSource, SourceFormat, BaseModel]:
    row = Source.objects.filter(pk=id).first()
    if row is None or not row.is_active:
        raise Skip("the source was deleted" if row is None else f"{row.name} is paused")
    source = ReadSource(row.pk, row.name, row.url, row.cursor)
    try:
        form = find_format(row.kind)
        return source, form, form.Settings.model_validate(row.settings)
    except (UnknownFormat, ValidationError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else str(error)
        record_error(source, f"has invalid settings: {reason}")
        raise Permanent(f"the settings of {row.name} are invalid: {reason}") from None


async def _read(source: ReadSource, form: SourceFormat, settings: BaseModel) -> Page:
    """Return the next page. Errors are recorded in the source's row and raised as outcomes."""
    restart_at = None
    try:
        return await form.read(source.url, settings, source.cursor or {})
    except RequestRefused as error:
        await sync_to_async(record_error)(source, str(error))
        raise Permanent(f"{source.name} {error}") from None
    except BadPage as error:
        problem, restart_at = str(error), error.cursor
    except RequestError as error:
        if error.after is not None:
            await sync_to_async(record_wait)(source, error.reason)
            raise Snooze(f"{source.name} {error}", seconds=error.after) from None
        problem = error.reason
    errors = await sync_to_async(record_error)(source, problem, restart_at)
    log.warning("source.failed", source=source.name, error=problem, errors_in_row=errors)
    if errors >= ERRORS_TO_FAIL:
        raise Permanent(f"{source.name} {problem} ({errors} errors in a row)")
    raise Snooze(f"{source.name} {problem}", seconds=wait_after(errors))
