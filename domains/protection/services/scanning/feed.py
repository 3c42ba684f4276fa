"""Poll the list of breaches of Have I Been Pwned, and scan monitored accounts for new breaches.

`/latestbreach` returns one breach. When it differs from the last read, and once a day, the
whole list is read, so that no breach is missed that was added between two polls or out of order.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Exists, OuterRef

from tailrace.db.query import database_now
from tailrace.domains.protection.models import Breach, BreachFeed, WatchlistItem
from tailrace.domains.protection.services.providers import hibp
from tailrace.domains.protection.services.providers.source import FoundBreach
from tailrace.domains.protection.services.scanning.breaches import store_breaches
from tailrace.domains.protection.services.scanning.payload import enqueue_scans
from tailrace.jobs.enqueue import enqueue
from tailrace.subscriptions.models import PlanSubscription

SOURCE = hibp.HibpBreaches
FAN_OUT = "protection.monitoring_fan_out"
WHOLE_LIST = timedelta(days=1)
"""Maximum time between two reads of the whole list."""
PIECE = 500
"""Accounts per job."""


async def poll() -> int:
    """Read the new breaches and enqueue scans for them; return the number of new breaches."""
    latest = await hibp.latest_breach()
    if latest is None or await sync_to_async(_is_known)(latest):
        return 0
    return await sync_to_async(_store_list)(latest, await hibp.all_breaches())


def _is_known(latest: FoundBreach) -> bool:
    since = database_now() - WHOLE_LIST
    return BreachFeed.objects.filter(
        name=SOURCE.name, latest=latest.name, listed_at__gt=since
    ).exists()


def _store_list(latest: FoundBreach, listed: Sequence[FoundBreach]) -> int:
    """Store the list; return the number of new breaches. Scan for them unless this is the first
    list. The lock of the feed's row lets one poll at a time do this."""
    now = database_now()
    with transaction.atomic():
        fields = {"latest": latest.name, "listed_at": now}
        feed, is_first = BreachFeed.objects.get_or_create(name=SOURCE.name, defaults=fields)
        BreachFeed.objects.select_for_update().get(pk=feed.pk)
        breaches = {each.name: each for each in [*listed, latest]}
        store_breaches(SOURCE.name, list(breaches.values()))
        unlisted = Breach.objects.filter(source=SOURCE.name, name__in=breaches, listed=False)
        new = unlisted.update(listed=True)
        BreachFeed.objects.filter(pk=feed.pk).update(**fields)
        if new and not is_first:
            _enqueue_fan_out(0, now)
    return 0 if is_first else new


def fan_out(after: int, since: datetime) -> int:
    """Enqueue scans of the next monitored accounts, and a job for the accounts after them; return
    the number of scans. A repeated scan looks up only the missing values."""
    items = WatchlistItem.objects.filter(
        user=OuterRef("account"), active=True, kind__in=SOURCE.kinds
    )
    monitored = PlanSubscription.objects.monitored().filter(Exists(items), pk__gt=after)
    rows = list(monitored.order_by("pk").values_list("pk", "account_id")[:PIECE])
    if rows:
        with transaction.atomic():
            enqueue_scans([account for _id, account in rows], since, [SOURCE.name])
            _enqueue_fan_out(rows[-1][0], since)
    return len(rows)


def _enqueue_fan_out(after: int, since: datetime) -> None:
    payload = {"after": after, "since": since}
    enqueue(FAN_OUT, payload, unique_key=f"{since.isoformat()}:{after}")
