"""Announce the findings of alerts: publish the event of a notice, and mark the findings that it
names, in one transaction."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from tailrace.db.query import database_now, query
from tailrace.domains.protection.alerts.findings import TYPES, FindingType, type_of
from tailrace.domains.protection.alerts.raising import (
    announce_now,
    announce_soon,
    lock_pauses,
    raise_alerts,
)
from tailrace.domains.protection.event_types import alert_event
from tailrace.domains.protection.models import Alert
from tailrace.events.publish import publish

MOST = 500
"""Alerts that are read at once."""
LATE = timedelta(minutes=10)
"""How long a notice may be due, or a finding have no alert, before the sweeper repairs it."""


def announce_due(user_id: int) -> int:
    """Send the notices of the user that are due; return their number."""
    sent = 0
    while ids := list(_due(user_id).order_by("pk").values_list("pk", flat=True)[:MOST]):
        sent += sum(_announce(user_id, id) for id in ids)
    return sent


def _due(user_id: int) -> QuerySet[Alert]:
    is_due = Q(announced_at__isnull=True) | Q(notice_at__lte=database_now())
    return Alert.objects.filter(is_due, user=user_id)


@transaction.atomic
def _announce(user_id: int, id: int) -> bool:
    """Send the notice of an alert that is due; return False if there is nothing to announce."""
    key = Alert.objects.filter(pk=id).values_list("user", "kind", "source").first()
    if key is not None:
        lock_pauses([key])
    alert = _due(user_id).filter(pk=id).select_for_update(no_key=True).first()
    if alert is None:
        return False
    is_first, has_findings = alert.announced_at is None, _announce_findings(alert)
    if is_first and not has_findings:  # they were deleted, or are not stored
        publish([alert_event(alert, alert.details, alert.severity)])
    sent = is_first or has_findings
    further = F("further_notices") + int(not is_first)
    changes = {"announced_at": database_now(), "further_notices": further} if sent else {}
    Alert.objects.filter(pk=id).update(notice_at=None, **changes)
    return sent


def _announce_findings(alert: Alert) -> bool:
    """Publish a notice of the alert's findings that no notice has named, and mark them; return
    False if there are none."""
    type = type_of(alert.kind)
    new = type.of_alert(alert).filter(announced_at=None)
    # With the lock, no other transaction deletes the findings before the notice is published.
    ids = list(new.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))
    if ids:
        rows = type.model._default_manager.filter(pk__in=ids)
        publish([alert_event(alert, type.details(alert, rows), type.severity(alert, rows))])
        rows.update(announced_at=database_now())
    return bool(ids)


def late_alerts(limit: int) -> list[int]:
    """Return the ids of alerts whose notice should have been sent."""
    before = database_now() - LATE
    never = Alert.objects.filter(announced_at=None, raised_at__lt=before, user__is_active=True)
    further = Alert.objects.filter(notice_at__lt=before, user__is_active=True)
    return [
        *never.order_by("user").values_list("pk", flat=True)[:limit],
        *further.order_by("notice_at").values_list("pk", flat=True)[:limit],
    ][:limit]


def announce_again(alerts: Sequence[int]) -> int:
    """Enqueue the jobs of late notices again; return the number of alerts."""
    for user in sorted(set(Alert.objects.filter(pk__in=alerts).values_list("user_id", flat=True))):
        announce_soon(user)
    return len(alerts)


# An alert that waits for its notice announces its findings. The others have no alert, or an alert
# that has nothing to announce.
_UNANNOUNCED = """
SELECT f.id FROM {table} f {owner} AND u.is_active
  LEFT JOIN tailrace_protection_alert a ON a.id = f.alert_id
WHERE f.announced_at IS NULL AND {is_finding}
  AND (a.id IS NULL AND NOT ({is_new}) OR a.announced_at IS NOT NULL AND a.notice_at IS NULL)
ORDER BY f.id LIMIT %(limit)s
"""


def unannounced(limit: int) -> list[tuple[int, int]]:
    """Return the findings that no notice has named or will name, each as the index of its type in
    TYPES and its id."""
    before = database_now() - LATE
    rows: list[tuple[int, int]] = []
    for index, type in enumerate(TYPES):
        statement = _UNANNOUNCED.format(
            table=type.model._meta.db_table,
            owner=type.owner,
            is_finding=type.is_finding,
            is_new=type.is_new,
        )
        rows += [(index, id) for (id,) in query(statement, before=before, limit=limit)]
    return rows[:limit]


def announce_findings(rows: Sequence[tuple[int, int]]) -> int:
    """Announce these findings at once: by their alerts, or by new ones; return their number. `rows`
    as returned by `unannounced`."""
    for index, type in enumerate(TYPES):
        if ids := [id for each, id in rows if each == index]:
            _announce_rows(type, ids)
    return len(rows)


def _announce_rows(type: FindingType, ids: Sequence[int]) -> None:
    findings = type.findings(ids)
    raise_alerts(findings)
    rows = type.model._default_manager.filter(pk__in=ids, alert__isnull=False)
    announce_now(sorted({alert for alert in rows.values_list("alert", flat=True) if alert}))
    for user in sorted({finding.user_id for finding in findings}):
        announce_soon(user)
