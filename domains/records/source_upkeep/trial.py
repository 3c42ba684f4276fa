"""Read the first page of a source that somebody describes, and tell what would be stored of it.

Nothing is stored but how the host answered (its circuit breaker and its rate limit). Addresses are
checked as those of a pull are, by the same `fetch`.
"""

import asyncio
import re
import threading
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync

from tailrace.domains.records.metadata import Problem, problems_of
from tailrace.domains.records.models import Deposition
from tailrace.domains.records.models.source import NAME
from tailrace.domains.records.source_upkeep.changes import InvalidSource
from tailrace.domains.records.source_upkeep.checks import problems
from tailrace.domains.records.sources.formats import BadPage, Page, SourceFormat, find_format
from tailrace.domains.records.sources.store import ReadSource, changed_records
from tailrace.jobs.destinations.source_errors import SourceError
from tailrace.net.shared_client import own_clients

COST = 20.0
"""Ordinary requests that a trial counts as."""
SECONDS = 20.0
"""For the whole trial: somebody waits for it."""
AT_ONCE = 2
"""Trials of one process: each holds one of its threads."""
SHOWN = 20
"""Records that are shown of the page."""
MAX_TITLE = 200
MAX_PROBLEMS = 5
_places = threading.BoundedSemaphore(AT_ONCE)


class TooManyTrials(Exception):
    """This process is trying AT_ONCE sources already."""


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """A record that would be deposited."""

    identifier: str
    title: str
    is_deleted: bool
    is_new: bool
    """Whether it would be the first version."""
    problems: list[Problem] = field(default_factory=list)
    """Why the deposition would be invalid."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it."""

    problem: str = ""
    """Why the page could not be read; empty: it could."""
    read: int = 0
    """Records of the page."""
    total: int | None = None
    """Records in all, if the source says so."""
    is_last: bool = False
    submitted: int = 0
    """Records of the page that are new or have changed."""
    records: list[TriedRecord] = field(default_factory=list)
    """The first SHOWN of these."""

    @property
    def unchanged(self) -> int:
        return self.read - self.submitted


def try_source(name: str, kind: str, url: str, settings: Any, cron: str = "0 3 * * *") -> Trial:
    """Read the first page. Raises InvalidSource, or TooManyTrials."""
    if wrong := problems(kind, url, settings, cron):
        raise InvalidSource(wrong)
    form = find_format(kind)
    if not _places.acquire(blocking=False):
        raise TooManyTrials("other sources are being tried: try again in a moment")
    try:
        page = async_to_sync(_read)(form, url, form.Settings.model_validate(settings))
    except (BadPage, SourceError) as error:
        return Trial(problem=f"The source {error}"[:500])
    except TimeoutError:
        return Trial(problem=f"The source gave no page in {SECONDS:g} seconds")
    finally:
        _places.release()
    return _described(name, page)


async def _read(form: SourceFormat, url: str, settings: Any) -> Page:
    async with asyncio.timeout(SECONDS), own_clients():
        return await form.read(url, settings, {})


def _described(name: str, page: Page) -> Trial:
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
        TriedRecord(
            draft.source_identifier,
            str(draft.metadata.get("title") or "")[:MAX_TITLE],
            draft.is_deleted,
            draft.identifier not in known,
            [] if draft.is_deleted else problems_of(draft.metadata)[:MAX_PROBLEMS],
        )
        for draft in shown
    ]
    read = len(page.records)
    return Trial("", read, page.total, page.is_last, len(drafts), records)
