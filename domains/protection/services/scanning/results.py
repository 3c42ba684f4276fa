"""Store the results of look-ups: breaches, exposures, alerts, and the times of the look-ups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import arrays, number_array
from tailrace.domains.protection.alerts.findings import EXPOSURES
from tailrace.domains.protection.alerts.raising import lock_pauses, raise_alerts
from tailrace.domains.protection.models import Severity
from tailrace.domains.protection.services.providers.source import FoundBreach
from tailrace.domains.protection.services.scanning.breaches import severity_of, store_breaches
from tailrace.jobs.destinations.together import Together


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


def _store(results: Sequence[LookupResult]) -> list[None]:
    """Store the results in one transaction. All writers lock the rows in the same order."""
    with transaction.atomic():
        users = dict(query(_LOCK_ITEMS, ids=number_array({result.item for result in results})))
        kept = [result for result in results if result.item in users]
        exposures = sorted(_exposures(kept, users), key=lambda each: (each.item, each.breach))
        if new := _new(exposures):
            lock_pauses({(each.user, "exposure", each.source) for each in new})
            raise_alerts(EXPOSURES.findings(_insert(new)))
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
                )


_COLUMNS = ("user", "item", "breach", "severity")
_ROWS = """unnest(%(user)s::int[], %(item)s::bigint[], %(breach)s::bigint[], %(severity)s::int[])
  AS n (user_id, item_id, breach_id, severity)"""
_KNOWN = f"""
SELECT item_id, breach_id FROM {_ROWS} JOIN tailrace_protection_exposure e
  USING (item_id, breach_id) WHERE e.severity >= n.severity
"""


def _new(exposures: Sequence[_Exposure]) -> list[_Exposure]:
    """Return the exposures that are not stored yet, or not as severe."""
    distinct = {(each.item, each.breach): each for each in exposures}
    rows = query(_KNOWN, **arrays(list(distinct.values()), _COLUMNS, numbers=_COLUMNS))
    known = {(item, breach) for item, breach in rows}
    return [each for key, each in distinct.items() if key not in known]


# An existing exposure changes only if its breach has become more severe.
_INSERT = f"""
INSERT INTO tailrace_protection_exposure AS e (user_id, item_id, breach_id, state, severity,
  first_at)
SELECT user_id, item_id, breach_id, 'new', severity, {clock.NOW} FROM {_ROWS}
ORDER BY item_id, breach_id
ON CONFLICT (item_id, breach_id) DO UPDATE
SET severity = excluded.severity, state = 'new', moved_at = excluded.first_at,
  alert_id = NULL, announced_at = NULL
WHERE e.severity < excluded.severity
RETURNING id
"""


def _insert(exposures: Sequence[_Exposure]) -> list[int]:
    """Return the id of each exposure that is new, or more severe than before."""
    return [id for (id,) in query(_INSERT, **arrays(exposures, _COLUMNS, numbers=_COLUMNS))]


_NOTE_SCANS = """
INSERT INTO tailrace_protection_itemscan AS s (item_id, source, scanned_at)
SELECT item_id, source, max(scanned_at)
FROM unnest(%(item)s::bigint[], %(source)s::text[], %(read_at)s::timestamptz[])
  AS n (item_id, source, scanned_at)
GROUP BY item_id, source ORDER BY item_id, source
ON CONFLICT (item_id, source) DO UPDATE
SET scanned_at = greatest(s.scanned_at, excluded.scanned_at)
"""
