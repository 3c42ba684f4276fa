"""Raise alerts: one per user, kind and source within a pause, unless a finding is more severe."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.domains.protection.models import Alert, Severity
from tailrace.jobs.enqueue import enqueue_many

NOTIFICATIONS = "protection.notifications_send"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a scan that its user should know."""

    user_id: int
    kind: str
    source: str
    severity: Severity
    details: dict[str, Any] = field(default_factory=dict)
    """Ids, names and counts for pages and mails; never a watched value."""


PAUSE = timedelta(hours=24)
"""How long no second alert of one kind and source is raised, unless it is more severe."""
PROPERTY_PAUSE = timedelta(hours=72)
"""The same for alerts about one property."""

# One statement per finding. It locks the row of the pause, so that only one of two workers with the
# same finding raises an alert.
_PAUSE = f"""
INSERT INTO tailrace_protection_alertpause AS p (user_id, kind, source, severity, until)
VALUES (%(user_id)s, %(kind)s, %(source)s, %(severity)s, {clock.NOW} + %(pause)s)
ON CONFLICT (user_id, kind, source) DO UPDATE
SET severity = excluded.severity, until = excluded.until
WHERE p.until <= {clock.NOW} OR p.severity < excluded.severity
RETURNING id
"""


def raise_alerts(findings: Sequence[Finding], pause: timedelta = PAUSE) -> list[Alert]:
    """Raise alerts for the findings without an alert in the last `pause`; return these alerts.

    Runs in the caller's transaction, or in one of its own. Of the findings of a user, kind and
    source only the most severe counts. Jobs of the queue `protection.notifications_send` notify the
    users.
    """
    worst: dict[tuple[int, str, str], Finding] = {}
    for finding in findings:
        key = finding.user_id, finding.kind, finding.source
        if key not in worst or worst[key].severity < finding.severity:
            worst[key] = finding
    with transaction.atomic():
        new = []
        for _key, finding in sorted(worst.items()):
            values = asdict(finding)
            if query(_PAUSE, **values, pause=pause):
                new.append(Alert(**values))
        raised = Alert.objects.bulk_create(new)
        users = sorted({alert.user_id for alert in raised})
        jobs = [{"payload": {"account": user}, "unique_key": str(user)} for user in users]
        enqueue_many(NOTIFICATIONS, jobs)
    return raised
