"""Store the results of look-ups: breaches, exposures, alerts, and the times of the look-ups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.protection.alerts.raising import Finding, raise_alerts
from tailrace.domains.protection.models import Severity
from tailrace.domains.protection.services.providers.source import FoundBreach
from tailrace.domains.protection.services.scanning.breaches import store_breaches
from tailrace.domains.protection.services.scanning.severity import severity_of
from tailrace.jobs.destinations.together import Together

ALERT_PAUSE = timedelta(hours=24)
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
    """An item in a breach."""

    user: int
    item: int
    breach: int
    severity: Severity
    source: str
    title: str


def _store(results: Sequence[LookupResult]) -> list[None]:
    """Store the results in one transaction. All writers lock the rows in the same order."""
    with transaction.atomic():
        users = _lock_items({result.item for result in results})
        kept = [result for result in results if result.item in users]
        exposures = sorted(_exposures(kept, users), key=lambda each: (each.item, each.breach))
        new = _insert(exposures)
        raise_alerts(
            list(_findings([each for each in exposures if _key(each) in new])), ALERT_PAUSE
        )
        _note_scans(kept)
    return [None] * len(results)


store: Together[LookupResult, None] = Together(_store)


# Results of items that were removed or paused during the look-up are not stored. The lock keeps the
# other items from being removed before the transaction ends.
_LOCK_ITEMS = """
SELECT id, user_id FROM tailrace_protection_watchlistitem
WHERE id = ANY(%(ids)s::bigint[]) AND active ORDER BY id FOR KEY SHARE
"""


def _lock_items(ids: set[int]) -> Mapping[int, int]:
    """Return the users of the active items with these ids, by id."""
    return dict(query(_LOCK_ITEMS, ids=number_array(ids)))


def _exposures(results: Sequence[LookupResult], users: Mapping[int, int]) -> Iterator[_Exposure]:
    for source in sorted({result.source for result in results}):
        source_results = [result for result in results if result.source == source]
        ids = store_breaches(
            source, [each for result in source_results for each in result.breaches]
        )
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
FROM unnest(%(users)s::int[], %(items)s::bigint[], %(breaches)s::bigint[], %(severities)s::int[])
  AS n (user_id, item_id, breach_id, severity)
ORDER BY item_id, breach_id
ON CONFLICT (item_id, breach_id) DO UPDATE
SET severity = excluded.severity, state = 'new', moved_at = excluded.first_at
WHERE e.severity < excluded.severity
RETURNING item_id, breach_id
"""


def _insert(exposures: Sequence[_Exposure]) -> set[tuple[int, int]]:
    """Return the item and breach of each exposure that is new, or more severe than before."""
    distinct = list({_key(each): each for each in exposures}.values())
    rows = query(
        _INSERT,
        users=number_array(each.user for each in distinct),
        items=number_array(each.item for each in distinct),
        breaches=number_array(each.breach for each in distinct),
        severities=number_array(int(each.severity) for each in distinct),
    )
    return {(item, breach) for item, breach in rows}


def _key(exposure: _Exposure) -> tuple[int, int]:
    return exposure.item, exposure.breach


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
FROM unnest(%(items)s::bigint[], %(sources)s::text[], %(times)s::timestamptz[])
  AS n (item_id, source, scanned_at)
GROUP BY item_id, source ORDER BY item_id, source
ON CONFLICT (item_id, source) DO UPDATE
SET scanned_at = greatest(s.scanned_at, excluded.scanned_at)
"""


def _note_scans(results: Sequence[LookupResult]) -> None:
    execute(
        _NOTE_SCANS,
        items=number_array(result.item for result in results),
        sources=text_array(result.source for result in results),
        times=text_array(result.read_at for result in results),
    )
