"""The moves of subscriptions: see the picture in `tailrace.subscriptions.models.plan`.

Each move is one guarded UPDATE, in one transaction with its schedules and its audit trail. The rows
of subscriptions are locked first, in the order of their ids, so that moves of the same subscription
follow each other, however many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.db import clock
from tailrace.subscriptions.models import Plan, PlanChange, PlanSubscription
from tailrace.subscriptions.plans import changes
from tailrace.subscriptions.plans.row_locks import lock, update
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
    """What became of the subscriptions that were to be moved."""

    changed: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    """Why the others were not, by id."""


def mark_past_due(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """A payment is missing: the jobs of these subscriptions run for PLAN_GRACE_DAYS more."""
    days = settings.PLAN_GRACE_DAYS
    with transaction.atomic():
        lock(ids)
        changed = update(
            f"status = 'past_due', grace_until = {clock.NOW} + %(grace)s",
            "status = 'active'",
            ids,
            grace=timedelta(days=days),
        )
        grace = f"its jobs run for {days} more days"
        _record(Action.PAST_DUE, changed, reason or grace, by)
    return _result(ids, changed)


def end_grace(ids: Sequence[int]) -> MoveResult:
    """Stop the jobs of subscriptions whose grace is over."""
    with transaction.atomic():
        lock(ids)
        over = f"status = 'past_due' AND grace_until <= {clock.NOW}"
        changed = update("grace_until = NULL", over, ids)
        remove_schedules_for(changed, "the payment is past due and the grace is over")
        _record(Action.GRACE_ENDED, changed, "its jobs do not run any more", None)
    return _result(ids, changed)


def cancel(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """Remove the schedules at once, and cancel their jobs that wait; running ones are asked to
    stop."""
    with transaction.atomic():
        lock(ids)
        changed = update("status = 'cancelled', grace_until = NULL", "status <> 'cancelled'", ids)
        remove_schedules_for(changed, "the subscription to the plan is cancelled")
        _record(Action.CANCELLED, changed, reason, by)
    return _result(ids, changed)


def resume(ids: Sequence[int], by: User | None = None, reason: str = "") -> MoveResult:
    """Make past due and cancelled subscriptions active again, with their schedules."""
    with transaction.atomic():
        lock(ids)
        changed = update("status = 'active', grace_until = NULL", "status <> 'active'", ids)
        write_schedules(changed)
        _record(Action.RESUMED, changed, reason, by)
    return _result(ids, changed)


def change(
    ids: Sequence[int],
    *,
    plan: Plan | None = None,
    anchor_day: int | None = None,
    time_zone: str | None = None,
    by: User | None = None,
) -> MoveResult:
    """Change the plan, the anchor day or the time zone (those that are given) of subscriptions that
    are not cancelled. What has run in its present period does not run again in it."""
    with transaction.atomic():
        before = {row.pk: row for row in lock(ids)}
        new = {"plan": plan and plan.pk, "day": anchor_day, "zone": time_zone}
        changed = update(_CHANGE, _DIFFERS, ids, **new)
        write_schedules([row for row in changed if row.is_served])
        names = dict(Plan.objects.values_list("pk", "name")) if changed else {}
        details = {row.pk: _difference(before[row.pk], row, names) for row in changed}
        changes.record(Action.CHANGED, details, by)
    return _result(ids, changed, same="nothing of it changes")


def _record(action: str, rows: Sequence[PlanSubscription], details: str, by: User | None) -> None:
    changes.record(action, {row.pk: details for row in rows}, by)


def _difference(old: PlanSubscription, new: PlanSubscription, plans: Mapping[int, str]) -> str:
    pairs = {
        "plan": (plans[old.plan_id], plans[new.plan_id]),
        "anchor day": (old.anchor_day, new.anchor_day),
        "time zone": (old.time_zone, new.time_zone),
    }
    return ", ".join(f"{name}: {a} → {b}" for name, (a, b) in pairs.items() if a != b)


def _result(ids: Sequence[int], changed: Sequence[PlanSubscription], same: str = "") -> MoveResult:
    """Return what became of these ids; `same` is why one that is not cancelled was refused."""
    done = {row.pk for row in changed}
    others = [id for id in ids if id not in done]
    rows = PlanSubscription.objects.using(DATABASE).filter(pk__in=others) if others else []
    reasons = {row.pk: _state(row) if row.is_cancelled else same or _state(row) for row in rows}
    refused = {id: reasons.get(id, "there is no such subscription") for id in others}
    return MoveResult(changed=sorted(done), refused=refused)


def _state(row: PlanSubscription) -> str:
    return f"it is {row.get_status_display()}"
