"""Try a source: read its first page and return the records that would be deposited.

Nothing is stored, except that the request counts for the host's circuit breaker and rate limit.
Addresses are checked as in a pull, by `fetch`.
"""

import asyncio
import re
import threading
from typing import Any

from asgiref.sync import async_to_sync

from tailrace.domains.records.depositions.metadata import problems_of
from tailrace.domains.records.depositions.submit import Draft
from tailrace.domains.records.models import Deposition
from tailrace.domains.records.models.source import NAME
from tailrace.domains.records.sources.formats import BadPage, Page, SourceFormat, find_format
from tailrace.domains.records.sources.store import ReadSource, changed_records
from tailrace.domains.records.sources.upkeep.changes import InvalidSource
from tailrace.domains.records.sources.upkeep.checks import problems
from tailrace.jobs.destinations.request_errors import RequestError
from tailrace.net.shared_client import own_clients
from tailrace.web.api.schemas import Out

COST = 20.0
"""The number of requests as which a trial counts."""
SECONDS = 20.0
"""Time limit of a trial, since a user waits for it."""
AT_ONCE = 2
"""Maximum number of concurrent trials per process: each occupies a thread."""
SHOWN = 20
"""Maximum number of records that are shown."""
MAX_TITLE = 200
MAX_PROBLEMS = 5
_trial_slots = threading.BoundedSemaphore(AT_ONCE)


class TooManyTrials(Exception):
    """This process is already running AT_ONCE trials."""


class TriedProblemOut(Out):
    field: str
    message: str


class TriedRecordOut(Out):
    identifier: str
    title: str
    is_deleted: bool
    is_new: bool
    """Whether this would be the first version of the record."""
    problems: list[TriedProblemOut]
    """The problems that would make the deposition invalid."""


class TrialOut(Out):
    problem: str
    """The reason why the page could not be read, or an empty string."""
    read: int
    """Number of records on the page."""
    total: int | None
    """Number of records of the source, if it tells the number."""
    is_last: bool
    """Whether this is the only page."""
    submitted: int
    """Number of records on the page that are new or have changed."""
    records: list[TriedRecordOut]
    """The first 20 new or changed records."""

    @property
    def unchanged(self) -> int:
        return self.read - self.submitted


def try_source(name: str, kind: str, url: str, settings: Any, cron: str = "0 3 * * *") -> TrialOut:
    """Read the first page. Raises InvalidSource or TooManyTrials."""
    if wrong := problems(kind, url, settings, cron):
        raise InvalidSource(wrong)
    form = find_format(kind)
    if not _trial_slots.acquire(blocking=False):
        raise TooManyTrials("other sources are being tried: try again in a moment")
    try:
        page = async_to_sync(_read)(form, url, form.Settings.model_validate(settings))
    except (BadPage, RequestError) as error:
        return _not_read(f"The source {error}"[:500])
    except TimeoutError:
        return _not_read(f"The source sent no page within {SECONDS:g} seconds")
    finally:
        _trial_slots.release()
    return _trial_of_page(name, page)


async def _read(form: SourceFormat, url: str, settings: Any) -> Page:
    async with asyncio.timeout(SECONDS), own_clients():
        return await form.read(url, settings, {})


def _not_read(problem: str) -> TrialOut:
    return TrialOut(problem=problem, read=0, total=None, is_last=False, submitted=0, records=[])


def _trial_of_page(name: str, page: Page) -> TrialOut:
    name = name if re.match(NAME.regex, name) else ""
    drafts = changed_records(ReadSource(0, name, "", None), page.records)
    shown = drafts[:SHOWN]
    identifiers = [draft.identifier for draft in shown]
    known = set(
        Deposition.objects.filter(identifier__in=identifiers)
        .distinct()
        .values_list("identifier", flat=True)
    )
    records = [
        TriedRecordOut(
            identifier=draft.source_identifier,
            title=str(draft.metadata.get("title") or "")[:MAX_TITLE],
            is_deleted=draft.is_deleted,
            is_new=draft.identifier not in known,
            problems=_problems_of(draft),
        )
        for draft in shown
    ]
    return TrialOut(
        problem="",
        read=len(page.records),
        total=page.total,
        is_last=page.is_last,
        submitted=len(drafts),
        records=records,
    )


def _problems_of(draft: Draft) -> list[TriedProblemOut]:
    problems = [] if draft.is_deleted else problems_of(draft.metadata)
    return [TriedProblemOut(**problem) for problem in problems[:MAX_PROBLEMS]]
