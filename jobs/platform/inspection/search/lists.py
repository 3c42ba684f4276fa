"""Find the newest jobs of each term of a search by an index, at most MOST."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.jobs.engine.failures.fingerprint import normalised
from tailrace.jobs.engine.inserting import search_values
from tailrace.jobs.platform.inspection.search.terms import InvalidSearch, Terms
from tailrace.jobs.platform.inspection.visibility import VIEW_EVENT_PAYLOAD, VIEW_JOB_PAYLOAD

MOST = 10_000
"""The maximum number of jobs, or of events, of one term; the newest are taken."""
GROUPS, JOBS_OF_GROUP = 1_000, 1_000
"""The number of failure groups whose errors are compared, and of failed jobs of each group."""
Between = tuple[int, int | None]
"""The first and the last id in the time range of a search; None: up to the newest."""


@dataclass(frozen=True, slots=True)
class Found:
    """The ids of the newest jobs of a term, and a note about jobs that were not searched."""

    ids: list[int]
    left_out: str = ""

    @classmethod
    def of(cls, ids: list[int], name: str) -> "Found":
        more = len(ids) >= MOST
        return cls(ids, f"Only the newest {MOST:,} jobs of {name} are searched." if more else "")

    def __add__(self, other: "Found") -> "Found":
        return Found(self.ids + other.ids, " ".join(filter(None, (self.left_out, other.left_out))))


def lists_of_ids(user: User, terms: Terms, between: Between) -> Iterator[Found]:
    """Yield the ids of the newest jobs of each term that has an index of its own."""
    if terms.subject:
        yield _with_subject(terms.subject)
    if terms.error:
        _need(user, VIEW_JOB_PAYLOAD, "errors")
        yield _with_error(terms.error, terms, between)
    if terms.words:
        found = _with_subject(terms.words)
        if user.has_perm(VIEW_JOB_PAYLOAD):
            found += _with_error(terms.words, terms, between)
        yield found
    for field, value in terms.values.items():
        yield Found.of(_jobs_with_value(user, field, value), f"{field}={value}")


SUBJECTS = 100_000
"""The maximum number of events with a subject that are read; the newest of them are taken."""
_OF_SUBJECT = """
SELECT id FROM (
  SELECT id FROM tailrace_events_event WHERE subject LIKE %(prefix)s AND subject <> ''
    LIMIT %(subjects)s
) e ORDER BY id DESC LIMIT %(limit)s
"""
_OF_EVENTS = """
SELECT j.id FROM unnest(%(ids)s::bigint[]) AS e (id)
JOIN LATERAL (SELECT id FROM tailrace_jobs_job WHERE event_id = e.id LIMIT 1000) j ON true
LIMIT %(limit)s
"""


def _with_subject(start: str) -> Found:
    rows = query(_OF_SUBJECT, prefix=f"{_escaped(start)}%", subjects=SUBJECTS, limit=MOST)
    return Found.of(_of_events([id for (id,) in rows]), f"the subject {start}")


def _of_events(ids: list[int]) -> list[int]:
    rows = query(_OF_EVENTS, ids=ids, limit=MOST) if ids else []
    return [id for (id,) in rows]


# The message of a group has placeholders for values that differ from job to job, such as numbers
# and quoted texts.
_CANDIDATES = """
SELECT id FROM tailrace_jobs_failuregroup
WHERE (%(queue)s = '' OR handler = %(queue)s)
  AND (%(since)s::timestamptz IS NULL OR last_seen_at >= %(since)s)
  AND (message ILIKE %(pattern)s OR message LIKE '%%…%%' OR message LIKE '%%<%%'
    OR length(message) >= 300)
ORDER BY last_seen_at DESC LIMIT %(groups)s
"""
# The last job that is read of a group is returned with any error: it shows that there may be more.
_WITH_ERROR = """
SELECT j.id, j.place, j.error ILIKE %(error)s
FROM unnest(%(ids)s::bigint[]) AS g (id) CROSS JOIN LATERAL (
  SELECT id, error, row_number() OVER (ORDER BY id DESC) AS place FROM tailrace_jobs_job
  WHERE failure_group_id = g.id AND state = 'failed' AND id BETWEEN %(first)s AND %(last)s
  ORDER BY id DESC LIMIT %(jobs)s
) j WHERE j.error ILIKE %(error)s OR j.place = %(jobs)s LIMIT %(limit)s
"""
NOT_COMPARED = (
    f"Not all errors were compared, only errors of the {GROUPS:,} latest failures and of the newest"
    f" {JOBS_OF_GROUP:,} failed jobs of each. To find others, add a queue, or a time range such as"
    " since:2h or until:2d."
)


def _with_error(error: str, terms: Terms, between: Between) -> Found:
    """Return the newest failed jobs whose error contains this text."""
    pattern, (first, last) = f"%{_escaped(normalised(error))}%", between
    candidates = query(
        _CANDIDATES, queue=terms.queue, pattern=pattern, since=terms.since, groups=GROUPS
    )
    rows = query(
        _WITH_ERROR,
        ids=[id for (id,) in candidates],
        first=first,
        last=2**63 - 1 if last is None else last,
        jobs=JOBS_OF_GROUP,
        error=f"%{_escaped(error)}%",
        limit=MOST,
    )
    whole = len(candidates) < GROUPS and len(rows) < MOST
    whole = whole and all(place < JOBS_OF_GROUP for _id, place, _matches in rows)
    return Found([id for id, _place, matches in rows if matches], "" if whole else NOT_COMPARED)


def _jobs_with_value(user: User, field: str, value: str) -> list[int]:
    of_types, of_handlers = search_values.all_fields()
    if field not in of_types | of_handlers:
        known = ", ".join(sorted(of_types | of_handlers))
        hint = f"Searchable fields: {known}." if known else "No type declares `searchable` fields."
        raise InvalidSearch(f"The payload field {field!r} cannot be searched. {hint}")
    if field in of_types - of_handlers:
        _need(user, VIEW_EVENT_PAYLOAD, "payloads of events")
    if field in of_handlers - of_types:
        _need(user, VIEW_JOB_PAYLOAD, "payloads of jobs")
    ids: list[int] = []
    if field in of_types and user.has_perm(VIEW_EVENT_PAYLOAD):
        ids += _of_events(search_values.find("event_id", field, value, MOST))
    if field in of_handlers and user.has_perm(VIEW_JOB_PAYLOAD):
        ids += search_values.find("job_id", field, value, MOST)
    return ids


def _need(user: User, permission: str, what: str) -> None:
    if not user.has_perm(permission):
        raise InvalidSearch(f"To search {what}, you need the permission {permission}.")


def _escaped(text: str) -> str:
    """Return the text with the wildcards of LIKE escaped."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
