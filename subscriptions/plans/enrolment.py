"""Subscribe accounts to plans, many at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.db.query import database_now, query
from tailrace.events.suggest import did_you_mean
from tailrace.subscriptions.models import Plan, PlanChange, PlanSubscription, Preferences
from tailrace.subscriptions.plans import changes
from tailrace.subscriptions.plans.schedules import write_schedules
from tailrace.web.time_zones import time_zone_names

BATCH = 2000
"""Accounts that are enrolled in one transaction."""


class EnrolmentError(ValueError):
    """A row that cannot be enrolled; `index` is its place in what was given."""

    def __init__(self, index: int, field: str, message: str) -> None:
        super().__init__(f"row {index}: {field}: {message}")
        self.index, self.field, self.message = index, field, message


@dataclass(frozen=True, slots=True)
class Enrolment:
    """An account that is to get a plan."""

    account: int
    """The user's id."""
    plan: str
    """The plan's name."""
    anchor_day: int | None = None
    """None: the day on which it is enrolled."""
    time_zone: str | None = None
    """None: that of the account's preferences, or UTC."""


@dataclass(slots=True)
class EnrolmentResult:
    """What became of the accounts."""

    subscriptions: list[int] = field(default_factory=list)
    """The ids of the new subscriptions."""
    subscribed_before: list[int] = field(default_factory=list)
    """The accounts that had one, which stays as it is: change or resume it."""


def enrol(enrolment: Enrolment, by: User | None = None) -> PlanSubscription | None:
    """Subscribe one account; return None if it has a subscription, perhaps a cancelled one.

    Raises EnrolmentError.
    """
    ids = enrol_many([enrolment], by).subscriptions
    return PlanSubscription.objects.using(DATABASE).get(pk=ids[0]) if ids else None


def enrol_many(enrolments: Iterable[Enrolment], by: User | None = None) -> EnrolmentResult:
    """Subscribe accounts to plans, with their schedules; each job runs for the first time within an
    hour. Each BATCH is one transaction, or all are part of the caller's.

    May be repeated: accounts that have a subscription keep it. Raises EnrolmentError for the first
    row of a batch that cannot be enrolled; the batches before it are.
    """
    result = EnrolmentResult()
    start = 0
    for batch in _batches(enrolments):
        with transaction.atomic():
            _enrol(batch, start, by, result)
        start += len(batch)
    return result


def _batches(enrolments: Iterable[Enrolment]) -> Iterator[list[Enrolment]]:
    rows = iter(enrolments)
    while batch := list(islice(rows, BATCH)):
        yield batch


_INSERT = """
INSERT INTO tailrace_subscriptions_plansubscription
  (account_id, plan_id, status, anchor_day, time_zone, last_runs)
SELECT account, plan, 'active', day, zone, '{}'
FROM unnest(%(accounts)s::int[], %(plans)s::bigint[], %(days)s::smallint[], %(zones)s::text[])
  AS row (account, plan, day, zone)
ORDER BY account
ON CONFLICT (account_id) DO NOTHING RETURNING id
"""


def _enrol(
    batch: Sequence[Enrolment], start: int, by: User | None, result: EnrolmentResult
) -> None:
    plans = dict(Plan.objects.using(DATABASE).values_list("name", "pk"))
    accounts = [row.account for row in batch]
    zones = _time_zones(accounts)
    _check(batch, start, plans, zones)
    now = database_now()
    in_zones = [row.time_zone or zones[row.account] for row in batch]
    days = [
        row.anchor_day or now.astimezone(ZoneInfo(zone)).day
        for row, zone in zip(batch, in_zones, strict=True)
    ]
    of_plans = [plans[row.plan] for row in batch]
    rows = query(_INSERT, accounts=accounts, plans=of_plans, days=days, zones=in_zones)
    new = PlanSubscription.objects.using(DATABASE).in_bulk([id for (id,) in rows])
    write_schedules(list(new.values()))
    names = {pk: name for name, pk in plans.items()}
    details = {row.pk: f"plan: {names[row.plan_id]}" for row in new.values()}
    changes.record(PlanChange.Action.ENROLLED, details, by)
    result.subscriptions += sorted(new)
    enrolled = {row.account_id for row in new.values()}
    result.subscribed_before += [account for account in accounts if account not in enrolled]


def _time_zones(accounts: Sequence[int]) -> dict[int, str]:
    """Return the time zone of each of these accounts that exists and is active."""
    users = User.objects.using(DATABASE).filter(pk__in=accounts, is_active=True)
    zones = dict.fromkeys(users.values_list("pk", flat=True), "UTC")
    preferences = Preferences.objects.using(DATABASE).filter(user__in=list(zones))
    known = time_zone_names()
    stored = preferences.values_list("user", "time_zone")
    return zones | {user: zone for user, zone in stored if zone in known}


def _check(
    batch: Sequence[Enrolment], start: int, plans: dict[str, int], accounts: dict[int, str]
) -> None:
    known = time_zone_names()
    for index, row in enumerate(batch, start):
        if row.account not in accounts:
            raise EnrolmentError(index, "account", "there is no active user of this id")
        if row.plan not in plans:
            hint = did_you_mean(row.plan, plans) or f"; the plans are {', '.join(sorted(plans))}"
            raise EnrolmentError(index, "plan", f"no plan is called {row.plan!r}{hint}")
        if row.anchor_day is not None and not 1 <= row.anchor_day <= 31:
            raise EnrolmentError(index, "anchor_day", f"{row.anchor_day} is not from 1 to 31")
        if row.time_zone is not None and row.time_zone not in known:
            hint = did_you_mean(row.time_zone, known)
            raise EnrolmentError(index, "time_zone", f"{row.time_zone!r} is no time zone{hint}")
