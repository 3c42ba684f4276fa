"""The moves of subscriptions: see the diagram in `tailrace.subscriptions.models.plan`.

Each move is one guarded UPDATE, in one transaction with its schedules and its audit trail, after
the subscriptions are locked in the order of their ids.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.db import clock
from tailrace.subscriptions.models import Plan, PlanChange, PlanSubscription
from tailrace.subscriptions.plans.row_locks import lock, record, update
from tailrace.subscriptions.plans.schedules import remove_schedules_for, write_schedules

Action = PlanChange.Action
_CHANGE = """
plan_id = coalesce(%(plan)s::bigint, plan_id),
anchor_day = coalesce(%(day)s::smallint, anchor_day),
time_zone = coalesce(%(zone)s::text, time_zone)
"""
_DIFFERS = """
status <> 'cancelled' AND (
  plan_id <> %(plan)s::bigint OR anchor_day <> %(day)s::smallint OR time_zone <> %(zone)s::text)
"""


@dataclass(slots=True)
class MoveResult:
    """The ids of changed subscriptions, and the reasons for the others."""

    changed: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    """The reason why a subscription was not changed, by id."""


def mark_past_due(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """Mark active subscriptions as past due: their jobs run for another PLAN_GRACE_DAYS."""
    days = settings.PLAN_GRACE_DAYS
    set_to = f"status = 'past_due', grace_until = {clock.NOW} + make_interval(days => {days:d})"
    details = reason or f"its jobs run for {days} more days"
    return _move(ids, set_to, "status = 'active'", Action.PAST_DUE, details, by)


def end_grace(ids: Sequence[int]) -> MoveResult:
    """Stop the jobs of subscriptions whose grace is over."""
    over = f"status = 'past_due' AND grace_until <= {clock.NOW}"
    why = "the payment is past due and the grace is over"
    remove, details = partial(remove_schedules_for, reason=why), "its jobs no longer run"
    return _move(ids, "grace_until = NULL", over, Action.GRACE_ENDED, details, then=remove)


def cancel(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """Cancel subscriptions: remove their schedules, cancel waiting jobs, and ask running jobs to
    stop."""
    set_to, where = "status = 'cancelled', grace_until = NULL", "status <> 'cancelled'"
    remove = partial(remove_schedules_for, reason="the subscription to the plan was cancelled")
    return _move(ids, set_to, where, Action.CANCELLED, reason, by, remove)


def resume(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """Make past due and cancelled subscriptions active again, and write their schedules."""
    set_to = "status = 'active', grace_until = NULL"
    return _move(ids, set_to, "status <> 'active'", Action.RESUMED, reason, by, write_schedules)


def _move(
    ids: Sequence[int],
    set_to: str,
    where: str,
    action: Action,
    details: str,
    by: User | None = None,
    then: Callable[[Sequence[PlanSubscription]], None] | None = None,
) -> MoveResult:
    """Update the subscriptions, call `then` with the changed ones, and record the change."""
    with transaction.atomic():
        lock(ids)
        changed = update(set_to, where, ids)
        if then is not None:
            then(changed)
        record(action, {row.pk: details for row in changed}, by)
    return _result(ids, changed)


def change(
    ids: Sequence[int],
    *,
    plan: Plan | None = None,
    anchor_day: int | None = None,
    time_zone: str | None = None,
    by: User | None = None,
) -> MoveResult:
    """Change the given values of subscriptions that are not cancelled.

    A job that has run in its current period does not run again in it.
    """
    with transaction.atomic():
        before = {row.pk: row for row in lock(ids)}
        new = {"plan": plan and plan.pk, "day": anchor_day, "zone": time_zone}
        changed = update(_CHANGE, _DIFFERS, ids, **new)
        write_schedules([row for row in changed if row.is_served])
        names = dict(Plan.objects.values_list("pk", "name")) if changed else {}
        details = {row.pk: _difference(before[row.pk], row, names) for row in changed}
        record(Action.CHANGED, details, by)
    return _result(ids, changed, unchanged_reason="it already has these values")


def _difference(old: PlanSubscription, new: PlanSubscription, plans: Mapping[int, str]) -> str:
    pairs = {
        "plan": (plans[old.plan_id], plans[new.plan_id]),
        "anchor day": (old.anchor_day, new.anchor_day),
        "time zone": (old.time_zone, new.time_zone),
    }
    return ", ".join(f"{name}: {a} → {b}" for name, (a, b) in pairs.items() if a != b)


def _result(
    ids: Sequence[int], changed: Sequence[PlanSubscription], unchanged_reason: str = ""
) -> MoveResult:
    """Return the result. A subscription that was not changed is refused because of its status, or
    with `unchanged_reason` if it is given and the subscription is not cancelled."""
    done = {row.pk for row in changed}
    others = [id for id in ids if id not in done]
    rows = PlanSubscription.objects.using(DATABASE).filter(pk__in=others) if others else []
    reasons = {
        row.pk: _status_reason(row) if row.is_cancelled else unchanged_reason or _status_reason(row)
        for row in rows
    }
    refused = {id: reasons.get(id, "there is no such subscription") for id in others}
    return MoveResult(changed=sorted(done), refused=refused)


def _status_reason(row: PlanSubscription) -> str:
    return f"it is {row.get_status_display()}"
