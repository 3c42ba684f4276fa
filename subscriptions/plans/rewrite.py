"""Rewrite the schedules of all subscriptions of a plan whose table was edited.

A job rewrites the schedules in pieces, in the order of the subscriptions' ids. `Plan.rewrite_after`
is the id of the last finished subscription, or null if all are finished. Another edit of the plan
resets it to 0.
"""

from collections.abc import Sequence

from django.db import transaction

from tailrace.db.query import execute, query
from tailrace.jobs.enqueue import enqueue
from tailrace.subscriptions.plans.row_locks import lock
from tailrace.subscriptions.plans.schedules import write_schedules

HANDLER = "subscriptions.rewrite_plan"
PIECE = 500
"""The number of subscriptions whose schedules are rewritten in one transaction."""

_BEGIN = "UPDATE tailrace_subscriptions_plan SET rewrite_after = 0 WHERE id = ANY(%(ids)s)"
_NEXT = """
SELECT id FROM tailrace_subscriptions_plansubscription
WHERE plan_id = %(plan)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
"""
_ADVANCE = """
UPDATE tailrace_subscriptions_plan SET rewrite_after = %(to)s
WHERE id = %(plan)s AND rewrite_after = %(after)s
"""


def begin(plans: Sequence[int]) -> None:
    """Enqueue jobs that rewrite the schedules of these plans.

    Call it in the transaction that edits the plans' tables, before the edit: it locks the plans, so
    that no transaction reads the tables until the edit is committed.
    """
    execute(_BEGIN, ids=list(plans))
    enqueue_for(plans)


def enqueue_for(plans: Sequence[int]) -> None:
    """Enqueue the jobs that rewrite these plans, unless they exist."""
    for plan in plans:
        enqueue(HANDLER, {"plan": plan}, unique_key=str(plan))


def rewrite_piece(plan: int) -> int:
    """Rewrite the schedules of the next PIECE subscriptions of the plan.

    Return their number, or 0 if all subscriptions are finished.
    """
    with transaction.atomic():
        after = _rewrite_after(plan)
        if after is None:
            return 0
        ids = [id for (id,) in query(_NEXT, plan=plan, after=after, limit=PIECE)]
        rows = [row for row in lock(ids) if row.plan_id == plan]
        if _rewrite_after(plan, locked=True) != after:  # after another edit, or by another job
            return 1
        write_schedules(rows)
        last = ids[-1] if len(ids) == PIECE else None
        execute(_ADVANCE, plan=plan, after=after, to=last)
        return len(ids)


def _rewrite_after(plan: int, locked: bool = False) -> int | None:
    # Always locked after the subscriptions, so that transactions cannot deadlock.
    lock_it = "FOR NO KEY UPDATE" if locked else ""
    rows = query(
        f"SELECT rewrite_after FROM tailrace_subscriptions_plan WHERE id = %(id)s {lock_it}",
        id=plan,
    )
    return rows[0][0] if rows else None
