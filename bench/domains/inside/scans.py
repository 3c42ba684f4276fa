"""Scans of watchlists: fill ACCOUNTS ITEMS | enqueue | big ITEMS | small ACCOUNTS. Prints JSON."""

import json
import sys
import time
from typing import Any

import django


def fill(accounts: int, items: int, name: str = "customer") -> list[int]:
    """Create accounts that are served by a plan without jobs, with so many items each."""
    from django.contrib.auth.models import User

    from tailrace.domains.protection.models import WatchlistItem
    from tailrace.domains.protection.services.watchlist import values
    from tailrace.net.encryption import encrypt
    from tailrace.subscriptions.models import Plan, PlanSubscription

    plan, _new = Plan.objects.get_or_create(name="bench")
    users = User.objects.bulk_create(User(username=f"{name}{n}") for n in range(accounts))
    PlanSubscription.objects.bulk_create(
        PlanSubscription(account=user, plan=plan, anchor_day=1) for user in users
    )
    keys = values.key_ids()
    names = ((user, f"{user.username}-{n}") for user in users for n in range(items))
    rows = (
        WatchlistItem(
            user=user,
            kind="username",
            value=encrypt(value),
            value_key=values.value_key("username", value),
            masked=values.masked("username", value),
            key_ids=keys,
        )
        for user, value in names
    )
    WatchlistItem.objects.bulk_create(rows, batch_size=2000)
    return [user.pk for user in users]


def enqueue() -> int:
    """Enqueue a scan of each account; return how many."""
    from django.contrib.auth.models import User

    accounts = User.objects.filter(username__startswith="customer").values_list("pk", flat=True)
    return _enqueue(accounts)


def big(items: int) -> int:
    """Enqueue the scan of one account with many items."""
    return _enqueue(fill(1, items, "big"))


def small(accounts: int) -> dict[str, Any]:
    """Enqueue the scans of small accounts; return how long each took, and whether the big one is
    still at work."""
    from tailrace.db.query import query

    ids = fill(accounts, 10, "small")
    _enqueue(ids)
    lanes = [str(id) for id in ids]
    until = time.monotonic() + 120
    done: list[Any] = []
    while len(done) < accounts and time.monotonic() < until:
        time.sleep(0.1)
        done = query(
            "SELECT extract(epoch FROM finished_at - created_at)::float8 FROM tailrace_jobs_job"
            " WHERE handler = 'protection.darkwatch_scan' AND lane = ANY(%(lanes)s)"
            " AND state = 'completed'",
            lanes=lanes,
        )
    [(left,)] = query(
        "SELECT count(*) FROM tailrace_jobs_job WHERE handler = 'protection.darkwatch_scan'"
        " AND state IN ('pending', 'running')"
    )
    return {"seconds": [seconds for (seconds,) in done], "left": left}


def _enqueue(accounts: Any) -> int:
    from tailrace.jobs.enqueue import enqueue_many

    return enqueue_many(
        "protection.darkwatch_scan", [{"payload": {"account": id}} for id in accounts]
    )


if __name__ == "__main__":
    django.setup()
    command, *numbers = sys.argv[1:]
    run = {"fill": fill, "enqueue": enqueue, "big": big, "small": small}[command]
    print(json.dumps(run(*map(int, numbers))))
