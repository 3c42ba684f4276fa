"""Rewrite the schedules of all subscriptions of a plan whose table was edited.

`Plan.rewrite_after` is how far it is: the last subscription, by id, whose schedules are those of
the edited plan; null when all are. A job works through the subscriptions in pieces; another edit
meanwhile sets it back to the start.
"""

from collections.abc import Sequence

from django.db import transaction

from tailrace.db.query import execute, query
from tailrace.jobs.enqueue import enqueue
from tailrace.subscriptions.plans.row_locks import lock
from tailrace.subscriptions.plans.schedules import write_schedules

HANDLER = "subscriptions.rewrite_plan"
PIECE = 500
"""Subscriptions whose schedules are rewritten in one transaction."""

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
    """Have jobs rewrite the schedules of these plans. Call it in the transaction that edits their
    tables, before the edit: nobody reads these then until the edit is committed."""
    execute(_BEGIN, ids=list(plans))
    enqueue_for(plans)


def enqueue_for(plans: Sequence[int]) -> None:
    """Enqueue the jobs of plans whose rewriting has begun."""
    for plan in plans:
        enqueue(HANDLER, {"plan": plan}, unique_key=str(plan))


def rewrite_piece(plan: int) -> int:
    """Rewrite the next piece of this plan's subscriptions; return how many, 0 if all are done."""
    with transaction.atomic():
        after = _rewrite_after(plan)
        if after is None:
            return 0
        ids = [id for (id,) in query(_NEXT, plan=plan, after=after, limit=PIECE)]
        rows = [row for row in lock(ids) if row.plan_id == plan]
        if _rewrite_after(plan, locked=True) != after:  # edited meanwhile, or another job was here
            return 1
        write_schedules(rows)
        last = ids[-1] if len(ids) == PIECE else None
        execute(_ADVANCE, plan=plan, after=after, to=last)
        return len(ids)


def _rewrite_after(plan: int, locked: bool = False) -> int | None:
    # Locked after the subscriptions, as everywhere: whoever changes these waits for the plan then.
    lock_it = "FOR NO KEY UPDATE" if locked else ""
    rows = query(
        f"SELECT rewrite_after FROM tailrace_subscriptions_plan WHERE id = %(id)s {lock_it}",
        id=plan,
    )
    return rows[0][0] if rows else None
