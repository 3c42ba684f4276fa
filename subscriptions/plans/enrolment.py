"""Subscribe accounts to plans, in batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.db.query import database_now, query
from tailrace.environment.suggest import did_you_mean
from tailrace.subscriptions.models import Plan, PlanChange, PlanSubscription, Preferences
from tailrace.subscriptions.plans.row_locks import record
from tailrace.subscriptions.plans.schedules import write_schedules
from tailrace.web.accounts.time_zones import time_zone_names

BATCH = 2000
"""The number of accounts that are enrolled in one transaction."""


class EnrolmentError(ValueError):
    """A row cannot be enrolled; `index` is its position in the given enrolments."""

    def __init__(self, index: int, field: str, message: str) -> None:
        super().__init__(f"row {index}: {field}: {message}")
        self.index, self.field, self.message = index, field, message


@dataclass(frozen=True, slots=True)
class Enrolment:
    """An account to subscribe to a plan."""

    account: int
    """The user's id."""
    plan: str
    """The plan's name."""
    anchor_day: int | None = None
    """None: the current day."""
    time_zone: str | None = None
    """None: the time zone in the account's preferences, or UTC."""


@dataclass(slots=True)
class EnrolmentResult:
    """The result of an enrolment."""

    subscriptions: list[int] = field(default_factory=list)
    """The ids of the new subscriptions."""
    subscribed_before: list[int] = field(default_factory=list)
    """The accounts that already have a subscription. It is not changed; change or resume it."""


def enrol(enrolment: Enrolment, by: User | None = None) -> PlanSubscription | None:
    """Subscribe one account; return None if it already has a subscription, perhaps a cancelled one.
    Raise EnrolmentError."""
    ids = enrol_many([enrolment], by).subscriptions
    return PlanSubscription.objects.using(DATABASE).get(pk=ids[0]) if ids else None


def enrol_many(enrolments: Iterable[Enrolment], by: User | None = None) -> EnrolmentResult:
    """Subscribe accounts to plans, and create their schedules. Each job first runs within an hour.

    Each BATCH is a transaction, unless the caller has one. Safe to repeat: accounts with a
    subscription keep it. Raise EnrolmentError for the first row that cannot be enrolled; the
    batches before it are enrolled.
    """
    result = EnrolmentResult()
    start, rows = 0, iter(enrolments)
    while batch := list(islice(rows, BATCH)):
        with transaction.atomic():
            _enrol(batch, start, by, result)
        start += len(batch)
    return result


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
    row_zones = [row.time_zone or zones[row.account] for row in batch]
    days = [
        row.anchor_day or now.astimezone(ZoneInfo(zone)).day
        for row, zone in zip(batch, row_zones, strict=True)
    ]
    row_plans = [plans[row.plan] for row in batch]
    rows = query(_INSERT, accounts=accounts, plans=row_plans, days=days, zones=row_zones)
    new = PlanSubscription.objects.using(DATABASE).in_bulk([id for (id,) in rows])
    write_schedules(list(new.values()))
    names = {pk: name for name, pk in plans.items()}
    details = {row.pk: f"plan: {names[row.plan_id]}" for row in new.values()}
    record(PlanChange.Action.ENROLLED, details, by)
    result.subscriptions += sorted(new)
    enrolled = {row.account_id for row in new.values()}
    result.subscribed_before += [account for account in accounts if account not in enrolled]


def _time_zones(accounts: Sequence[int]) -> dict[int, str]:
    """Return the time zones of these accounts by id; inactive or unknown accounts are missing."""
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
            raise EnrolmentError(index, "account", "there is no active user with this id")
        if row.plan not in plans:
            hint = did_you_mean(row.plan, plans) or f"; the plans are {', '.join(sorted(plans))}"
            raise EnrolmentError(index, "plan", f"no plan is called {row.plan!r}{hint}")
        if row.anchor_day is not None and not 1 <= row.anchor_day <= 31:
            raise EnrolmentError(index, "anchor_day", f"{row.anchor_day} is not between 1 and 31")
        if row.time_zone is not None and row.time_zone not in known:
            hint = did_you_mean(row.time_zone, known)
            raise EnrolmentError(index, "time_zone", f"{row.time_zone!r} is not a time zone{hint}")
