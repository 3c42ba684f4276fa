"""The look-ups of a scan: the items of an account, source by source, and their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.views.decorators.debug import sensitive_variables

from tailrace.db.query import database_now
from tailrace.domains.protection.models import ItemScan, WatchlistItem
from tailrace.domains.protection.services.providers.source import Source
from tailrace.jobs.destinations.together import Together
from tailrace.subscriptions.models import PlanSubscription

MOST_ITEMS = 100
"""Maximum number of items of a job."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """An item that has to be looked up in a source."""

    item: int
    source: Source


@dataclass(frozen=True, slots=True)
class Value:
    """A watched value, decrypted for its look-up."""

    kind: str
    text: str | None = field(repr=False)
    """None if the key that encrypted it is lost."""
    read_at: datetime
    """When the value was read, by the database's clock: the time of the look-up."""
    is_served: bool
    """Whether the account's plan is served."""


def parts(items: QuerySet[WatchlistItem]) -> list[int]:
    """Divide the items into ranges of at most MOST_ITEMS; return the last id of each."""
    ids = list(items.order_by("pk").values_list("pk", flat=True))
    return [*ids[MOST_ITEMS - 1 : -1 : MOST_ITEMS], *ids[-1:]]


def pending(
    items: QuerySet[WatchlistItem], sources: Sequence[Source], since: datetime
) -> list[Lookup]:
    """Return the look-ups that have not been made since this time, item by item."""
    lookups = []
    for source in sources:
        scans = ItemScan.objects.filter(item=OuterRef("pk"), source=source.name)
        is_scanned = Exists(scans.filter(scanned_at__gte=since))
        rows = items.filter(~is_scanned, kind__in=source.kinds)
        lookups += [Lookup(id, source) for id in rows.values_list("pk", flat=True)]
    return sorted(lookups, key=lambda lookup: (lookup.item, lookup.source.name))


def not_looked_up(items: QuerySet[WatchlistItem], sources: Sequence[Source]) -> Mapping[str, int]:
    """Return the number of items, by kind, that no source can look up."""
    kinds = {kind for source in sources for kind in source.kinds}
    rows = items.exclude(kind__in=kinds).values_list("kind").order_by("kind")
    return dict(rows.annotate(items=Count("pk")))


@sensitive_variables()
def _values(ids: Sequence[int]) -> list[Value | None]:
    now = database_now()
    items = {item.pk: item for item in WatchlistItem.objects.filter(pk__in=ids, active=True)}
    accounts = {item.user_id for item in items.values()}
    subscriptions = PlanSubscription.objects.served().filter(account__in=accounts)
    served = set(subscriptions.values_list("account_id", flat=True))
    return [
        Value(items[id].kind, items[id].readable_value(), now, items[id].user_id in served)
        if id in items
        else None
        for id in ids
    ]


value_of: Together[int, Value | None] = Together(_values)
"""Return the value of an item; None if the item was removed or is not active."""
