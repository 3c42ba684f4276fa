"""The audit trail of subscriptions: one row per change."""

from collections.abc import Mapping

from django.contrib.auth.models import User

from tailrace.db.query import execute

_RECORD = """
INSERT INTO tailrace_subscriptions_planchange (subscription_id, action, details, by_id)
SELECT id, %(action)s, details, %(by)s
FROM unnest(%(ids)s::bigint[], %(details)s::text[]) AS change (id, details)
"""


def record(action: str, details: Mapping[int, str], by: User | None) -> None:
    """Record an action of the user `by` (None: the program), with details by subscription id."""
    execute(
        _RECORD,
        action=action,
        ids=list(details),
        details=[text[:500] for text in details.values()],
        by=by and by.pk,
    )
