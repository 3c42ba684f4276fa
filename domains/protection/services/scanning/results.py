"""Store the results of look-ups: breaches, exposures, alerts, and the times of the look-ups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import arrays, number_array
from tailrace.domains.protection.alerts.raising import Finding, raise_alerts
from tailrace.domains.protection.models import Severity
from tailrace.domains.protection.services.providers.source import FoundBreach
from tailrace.domains.protection.services.scanning.breaches import severity_of, store_breaches
from tailrace.jobs.destinations.together import Together

ALERT = "exposure"
MOST_NAMES = 20
"""Maximum number of breaches that an alert names."""


@dataclass(frozen=True, slots=True)
class LookupResult:
    """A source's answer for an item; without breaches if there are none."""

    item: int
    source: str
    read_at: datetime
    breaches: Sequence[FoundBreach]


@dataclass(frozen=True, slots=True)
class _Exposure:
    user: int
    item: int
    breach: int
    severity: Severity
    source: str
    title: str


def _store(results: Sequence[LookupResult]) -> list[None]:
    """Store the results in one transaction. All writers lock the rows in the same order."""
    with transaction.atomic():
        users = dict(query(_LOCK_ITEMS, ids=number_array({result.item for result in results})))
        kept = [result for result in results if result.item in users]
        exposures = sorted(_exposures(kept, users), key=lambda each: (each.item, each.breach))
        new = _insert(exposures)
        found = [each for each in exposures if (each.item, each.breach) in new]
        raise_alerts(list(_findings(found)))
        execute(_NOTE_SCANS, **arrays(kept, ("item", "source", "read_at"), numbers=("item",)))
    return [None] * len(results)


store: Together[LookupResult, None] = Together(_store)


# Results of items that were removed or paused during the look-up are not stored. The lock keeps the
# other items from being removed before the transaction ends.
_LOCK_ITEMS = """
SELECT id, user_id FROM tailrace_protection_watchlistitem
WHERE id = ANY(%(ids)s::bigint[]) AND active ORDER BY id FOR KEY SHARE
"""


def _exposures(results: Sequence[LookupResult], users: Mapping[int, int]) -> Iterator[_Exposure]:
    for source in sorted({result.source for result in results}):
        source_results = [result for result in results if result.source == source]
        breaches = [each for result in source_results for each in result.breaches]
        ids = store_breaches(source, breaches)
        for result in source_results:
            for breach in {each.name: each for each in result.breaches}.values():
                yield _Exposure(
                    users[result.item],
                    result.item,
                    ids[breach.name],
                    severity_of(breach.data_classes),
                    source,
                    breach.title,
                )


# An existing exposure changes only if its breach has become more severe.
_INSERT = f"""
INSERT INTO tailrace_protection_exposure AS e (user_id, item_id, breach_id, state, severity,
  first_at)
SELECT user_id, item_id, breach_id, 'new', severity, {clock.NOW}
FROM unnest(%(user)s::int[], %(item)s::bigint[], %(breach)s::bigint[], %(severity)s::int[])
  AS n (user_id, item_id, breach_id, severity)
ORDER BY item_id, breach_id
ON CONFLICT (item_id, breach_id) DO UPDATE
SET severity = excluded.severity, state = 'new', moved_at = excluded.first_at
WHERE e.severity < excluded.severity
RETURNING item_id, breach_id
"""


def _insert(exposures: Sequence[_Exposure]) -> set[tuple[int, int]]:
    """Return the item and breach of each exposure that is new, or more severe than before."""
    distinct = list({(each.item, each.breach): each for each in exposures}.values())
    columns = ("user", "item", "breach", "severity")
    rows = query(_INSERT, **arrays(distinct, columns, numbers=columns))
    return {(item, breach) for item, breach in rows}


def _findings(exposures: Sequence[_Exposure]) -> Iterator[Finding]:
    """Yield one finding for each user and source, with the highest severity of its exposures."""
    groups: dict[tuple[int, str], list[_Exposure]] = {}
    for each in exposures:
        groups.setdefault((each.user, each.source), []).append(each)
    for (user, source), group in groups.items():
        titles = list(dict.fromkeys(each.title for each in group))
        details = {"breaches": titles[:MOST_NAMES], "exposures": len(group)}
        yield Finding(user, ALERT, source, max(each.severity for each in group), details)


_NOTE_SCANS = """
INSERT INTO tailrace_protection_itemscan AS s (item_id, source, scanned_at)
SELECT item_id, source, max(scanned_at)
FROM unnest(%(item)s::bigint[], %(source)s::text[], %(read_at)s::timestamptz[])
  AS n (item_id, source, scanned_at)
GROUP BY item_id, source ORDER BY item_id, source
ON CONFLICT (item_id, source) DO UPDATE
SET scanned_at = greatest(s.scanned_at, excluded.scanned_at)
"""
