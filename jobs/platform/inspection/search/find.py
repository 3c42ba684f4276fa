"""Find the jobs of a search at a bounded cost, by indexes or by lists of ids."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet

from tailrace.db.connections import timed_out
from tailrace.db.limits import time_limits
from tailrace.db.row_ids import MARGIN, first_id_since, row_id
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.models.job import INDEXED_STATES
from tailrace.jobs.platform.inspection.search.lists import Between, lists_of_ids
from tailrace.jobs.platform.inspection.search.terms import InvalidSearch, Terms, parse

SECONDS = 3.0
TOO_SLOW = (
    "This search takes too long. Add a queue, or a time range such as since:2h, and try again."
)
FILTERS_WITH_INDEX = ("event", "failure", "flow", "connected_with")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The jobs of a search, unordered."""

    jobs: QuerySet[Job]
    terms: Terms
    left_out: str = ""
    """Which jobs were not searched, as text for the user; empty if all were searched."""
    ids: Between = (0, None)

    def within(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """Return the jobs that may have been created in the time range of the search."""
        first, last = self.ids
        jobs = jobs.filter(pk__gte=first) if first else jobs
        return jobs if last is None else jobs.filter(pk__lte=last)


def scans(terms: Terms, filters: Mapping[str, object]) -> bool:
    """Return whether no index serves these terms with the list's filters (name → value)."""
    terms_with_index = terms.id or terms.event or terms.flow or terms.subject or terms.error
    if terms_with_index or terms.words or terms.values or any(map(filters.get, FILTERS_WITH_INDEX)):
        return False
    if (filters.get("state") or terms.state) in INDEXED_STATES:
        return False
    named = terms.queue or terms.state or terms.key or terms.lane
    return bool(named) or any(filters.values())


def search(user: User, text: str, jobs: QuerySet[Job]) -> SearchResult:
    """Return the jobs that match the text. Raises InvalidSearch.

    If `terms.reveals_hidden()`, the caller must leave out jobs that the user may not see.
    """
    try:
        with time_limits(SECONDS, SECONDS):
            return _search(user, parse(text), jobs)
    except OperationalError as error:
        if not timed_out(error):
            raise
        raise InvalidSearch(TOO_SLOW) from error


def _search(user: User, terms: Terms, jobs: QuerySet[Job]) -> SearchResult:
    terms = _with_words_read(terms)
    columns = {
        "pk": terms.id, "event": terms.event, "handler": terms.queue, "state": terms.state,
        "routing_key": terms.key, "lane": terms.lane, "flow_id": terms.flow,
    }  # fmt: skip
    names = list(Queue.objects.values_list("pk", flat=True)) if terms.queue else []
    if terms.queue and terms.queue not in names:
        raise InvalidSearch(f"There is no queue {terms.queue!r}{did_you_mean(terms.queue, names)}")
    jobs = jobs.filter(**{name: value for name, value in columns.items() if value})
    between = _ids_between(terms.since, terms.until)
    if terms.since:
        jobs = jobs.filter(created_at__gte=terms.since)
    if terms.until:
        jobs = jobs.filter(created_at__lt=terms.until)
    left_out: dict[str, None] = {}
    for matches in lists_of_ids(user, terms, between):
        left_out |= {matches.left_out: None} if matches.left_out else {}
        jobs = jobs.filter(pk__in=matches.ids)
    result = SearchResult(jobs, terms, " ".join(left_out), between)
    return replace(result, jobs=result.within(jobs))


def _with_words_read(terms: Terms) -> Terms:
    """Interpret words without a term name as an id or a queue; otherwise they remain: the start of
    a subject or part of an error. This does not depend on which subjects exist, because subjects
    may be hidden."""
    words = terms.words
    if words.isascii() and words.isdigit():
        id = row_id(words)
        if terms.id or id is None:
            raise InvalidSearch("Enter one id at a time, a number such as 42.")
        return replace(terms, id=id, words="")
    if words and not terms.queue and Queue.objects.filter(pk=words).exists():
        return replace(terms, queue=words, words="")
    return terms


def _ids_between(since: datetime | None, until: datetime | None) -> Between:
    """Return the lowest and the highest id that a job created in this time may have."""
    first_since = partial(first_id_since, "tailrace_jobs_job", "created_at")
    first = first_since(since - MARGIN) if since else 0
    return first, first_since(until + MARGIN) - 1 if until else None
