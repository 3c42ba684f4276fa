"""Lock and change the rows of subscriptions, and record changes in their audit trail."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS as DATABASE

from tailrace.db import clock, locks
from tailrace.db.query import query
from tailrace.subscriptions.models import PlanChange, PlanSubscription

_LOCK = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT s.* FROM limited, tailrace_subscriptions_plansubscription s WHERE s.id = ANY(%(ids)s)
  ORDER BY s.id FOR NO KEY UPDATE OF s
), {locks.restored("locked")}
SELECT locked.* FROM restored, locked
"""


def lock(ids: Sequence[int]) -> list[PlanSubscription]:
    """Lock these subscriptions in the order of their ids, and return them. Raise Blocked if another
    transaction locks one of them for more than ten seconds."""
    with locks.named(lambda: f"{len(ids)} subscriptions to plans, from {min(ids)} to {max(ids)}"):
        return _rows(_LOCK, ids=list(ids), **locks.params())


def update(set_to: str, where: str, ids: Sequence[int], **params: Any) -> list[PlanSubscription]:
    """Update the locked rows that match the condition, and return them."""
    statement = f"""UPDATE tailrace_subscriptions_plansubscription SET {set_to}
                    WHERE id = ANY(%(ids)s) AND ({where}) RETURNING *"""
    return _rows(statement, ids=list(ids), clock=clock.offset, **params)


def record(action: PlanChange.Action, details: Mapping[int, str], by: User | None) -> None:
    """Record an action of the user `by` (None: the program), with details by subscription id."""
    PlanChange.objects.bulk_create(
        PlanChange(subscription_id=id, action=action, details=text[:500], by=by)
        for id, text in details.items()
    )


_LOCK_PLANS = (
    "SELECT id FROM tailrace_subscriptions_plan WHERE id = ANY(%(ids)s) ORDER BY id FOR SHARE"
)


def share_plans(ids: Collection[int]) -> None:
    """Wait for edits of these plans to end, and block new edits until the transaction ends."""
    with locks.named(lambda: f"the plans {sorted(ids)}"):
        query(_LOCK_PLANS, ids=list(ids))


def _rows(statement: str, **params: Any) -> list[PlanSubscription]:
    return list(PlanSubscription.objects.raw(statement, params, using=DATABASE))
