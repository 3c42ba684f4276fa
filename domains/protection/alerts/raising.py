"""Raise alerts: one per user, kind and source within a pause, unless a finding is more severe.

Findings within the pause join the alert. They are announced when the pause ends, or at once if they
are critical.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import DateTimeField, Value
from django.db.models.functions import Coalesce, Least

from tailrace.db import clock
from tailrace.db.query import database_now, execute, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.protection.alerts.findings import Finding, type_of
from tailrace.domains.protection.models import Alert, AlertPause, Severity
from tailrace.jobs.enqueue import enqueue

NOTIFICATIONS = "protection.notifications_send"
GATHERING = timedelta(minutes=1)
"""The shortest time between two notices of an alert."""

Key = tuple[int, str, str]
"""The user, kind and source of alerts."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The locked pause of a key."""

    severity: int
    until: datetime
    runs: bool
    alert: int | None

    def admits(self, finding: Finding) -> bool:
        """Return whether the finding raises an alert of its own."""
        return not self.runs or self.alert is None or self.severity < finding.severity


def raise_alerts(findings: Sequence[Finding]) -> list[Alert]:
    """Raise alerts for the findings that are in no pause (see FindingType), and let the others join
    their alerts; return the new alerts.

    Runs in the transaction that stores the findings. Jobs of the queue
    `protection.notifications_send` notify the users.
    """
    with transaction.atomic():
        merged = _merged(findings)
        pauses = lock_pauses(merged)
        raised = []
        for key, finding in sorted(merged.items()):
            if pauses[key].admits(finding):
                raised.append(_raise(finding))
            else:
                _join(finding, pauses[key])
    return raised


def lock_pauses(keys: Collection[Key]) -> dict[Key, Pause]:
    """Lock the pauses of these alerts until the transaction ends, and return them.

    A transaction that changes stored findings calls this first: the worker that announces findings
    also locks the pause before it changes them.
    """
    ordered = sorted(keys)
    columns = {
        "user": number_array(user for user, _kind, _source in ordered),
        "kind": text_array(kind for _user, kind, _source in ordered),
        "source": text_array(source for _user, _kind, source in ordered),
    }
    execute(_CREATE, **columns)
    return {(row[0], row[1], row[2]): Pause(*row[3:]) for row in query(_LOCK, **columns)}


_KEYS = """unnest(%(user)s::int[], %(kind)s::text[], %(source)s::text[])
  AS k (user_id, kind, source)"""
_CREATE = f"""
INSERT INTO tailrace_protection_alertpause (user_id, kind, source, severity, until)
SELECT user_id, kind, source, {Severity.INFO}, {clock.NOW} FROM {_KEYS}
WHERE NOT EXISTS (SELECT FROM tailrace_protection_alertpause p
  WHERE (p.user_id, p.kind, p.source) = (k.user_id, k.kind, k.source))
ORDER BY 1, 2, 3 ON CONFLICT (user_id, kind, source) DO NOTHING
"""
_LOCK = f"""
SELECT p.user_id, p.kind, p.source, p.severity, p.until, p.until > {clock.NOW}, p.alert_id
FROM {_KEYS} JOIN tailrace_protection_alertpause p USING (user_id, kind, source)
ORDER BY 1, 2, 3 FOR UPDATE OF p
"""


def _merged(findings: Sequence[Finding]) -> Mapping[Key, Finding]:
    """Return one finding per key, with the rows of all and the highest severity."""
    merged: dict[Key, Finding] = {}
    for finding in findings:
        before = merged.get(finding.key, finding)
        ids = tuple({*before.ids, *finding.ids})
        worst = max(before, finding, key=lambda each: each.severity)
        merged[finding.key] = replace(worst, ids=ids)
    return merged


def _raise(finding: Finding) -> Alert:
    alert = Alert.objects.create(
        user_id=finding.user_id,
        kind=finding.kind,
        source=finding.source,
        severity=finding.severity,
        details=dict(finding.details),
    )
    pauses = AlertPause.objects.filter(
        user=finding.user_id, kind=finding.kind, source=finding.source
    )
    until = database_now() + type_of(finding.kind).pause
    pauses.update(severity=finding.severity, until=until, alert=alert.pk)
    _add(finding, alert)
    announce_soon(finding.user_id)
    return alert


def _join(finding: Finding, pause: Pause) -> None:
    """Add the finding to the alert of the pause. Its notice is sent at once if the finding is
    critical, else at the end of the pause. The values of one scan are stored one by one, so at
    least GATHERING lies between two notices."""
    alert = Alert.objects.get(pk=pause.alert or 0)
    _add(finding, alert)
    if alert.announced_at is None:  # its first notice names the finding
        announce_soon(finding.user_id)
        return
    is_critical = finding.severity == Severity.CRITICAL
    due_at = min(_soonest(alert), pause.until) if is_critical else pause.until
    due = Value(due_at, DateTimeField())
    Alert.objects.filter(pk=alert.pk).update(notice_at=Least(Coalesce("notice_at", due), due))
    key = f"{finding.user_id}:{alert.pk}:{'critical' if is_critical else 'end'}"
    enqueue(NOTIFICATIONS, {"account": finding.user_id}, due_at=due_at, unique_key=key)


def _soonest(alert: Alert) -> datetime:
    """Return when the next notice of the alert may be sent: now, unless the last was just sent."""
    now = database_now()
    return max(now, alert.announced_at + GATHERING) if alert.announced_at else now


def _add(finding: Finding, alert: Alert) -> None:
    """Store the alert in the rows of the finding, and name all findings of the alert in its
    details."""
    type = type_of(finding.kind)
    rows = type.model._default_manager.filter(pk__in=finding.ids)
    if rows.update(alert=alert.pk, announced_at=None):
        alert.details = type.details(alert, type.of_alert(alert))
        alert.save(update_fields=["details"])


def announce_now(alerts: Sequence[int]) -> None:
    """Make another notice of these alerts due now."""
    Alert.objects.filter(pk__in=alerts).update(notice_at=database_now())


def announce_soon(user_id: int) -> None:
    """Enqueue the job that sends the user's due notices."""
    enqueue(NOTIFICATIONS, {"account": user_id}, unique_key=str(user_id))
