"""The findings that alerts are about, as they are stored: exposures, changes of properties, and
moves of removal requests.

A finding has the alert that it joined, and the time when a notice named it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import Max, QuerySet

from tailrace.domains.protection.models import (
    Alert,
    AlertFinding,
    ChangeKind,
    Exposure,
    PropertyChange,
    RemovalChange,
    Severity,
)

MOST_NAMES = 20
"""Maximum number of names in the details of an alert."""
MOST_READ = 500
"""Maximum number of findings that are read for the names."""
MOST_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Finding:
    """Findings of one user, kind and source, of which the user should be notified."""

    user_id: int
    kind: str
    source: str
    severity: Severity
    details: Mapping[str, Any] = field(default_factory=dict)
    """More for the details of its alert than its FindingType returns."""
    ids: tuple[int, ...] = ()
    """The rows of its FindingType."""

    @property
    def key(self) -> tuple[int, str, str]:
        return self.user_id, self.kind, self.source


class FindingType:
    """A table of findings, and the alerts about them. `of_alert` has to be served by an index."""

    model: ClassVar[type[AlertFinding]]
    owner: ClassVar[str]
    """SQL that joins the user `u` to the finding `f`."""
    is_new: ClassVar[str]
    """SQL condition on `f`: a finding without an alert is newer than `before`."""
    is_finding: ClassVar[str] = "true"
    """SQL condition on `f`: the row is a finding."""
    pause: ClassVar[timedelta] = timedelta(hours=24)
    """How long no second alert of one kind and source is raised, unless it is more severe."""

    def of_alert(self, alert: Alert) -> QuerySet[Any]:
        """Return the findings that have joined the alert."""
        raise NotImplementedError

    def details(self, alert: Alert, rows: QuerySet[Any]) -> dict[str, Any]:
        """Return the ids, names and counts of these findings, without a watched value."""
        raise NotImplementedError

    def severity(self, alert: Alert, rows: QuerySet[Any]) -> int:
        """Return the severity of the worst of these findings."""
        return int(rows.aggregate(worst=Max("severity"))["worst"])

    def findings(self, ids: Iterable[int]) -> list[Finding]:
        """Return one Finding for each user, kind and source of these rows."""
        raise NotImplementedError


class Exposures(FindingType):
    model = Exposure
    owner = "JOIN auth_user u ON u.id = f.user_id"
    is_new = "f.first_at > %(before)s"

    def of_alert(self, alert: Alert) -> QuerySet[Exposure]:
        return Exposure.objects.filter(user=alert.user_id, alert=alert.pk)

    def details(self, alert: Alert, rows: QuerySet[Exposure]) -> dict[str, Any]:
        breaches = [row.breach for row in rows.select_related("breach").order_by("pk")[:MOST_READ]]
        titles = dict.fromkeys(breach.title for breach in breaches)
        lost = {str(name)[:MOST_CHARACTERS] for breach in breaches for name in breach.data_classes}
        return {
            "breaches": list(titles)[:MOST_NAMES],
            "leaks": rows.values("breach").distinct().count(),
            "exposures": rows.count(),
            "lost": sorted(lost)[:MOST_NAMES],
        }

    def findings(self, ids: Iterable[int]) -> list[Finding]:
        rows = Exposure.objects.filter(pk__in=ids).select_related("breach").order_by("pk")
        return _grouped(("exposure", row.user_id, row.breach.source, row) for row in rows)


class PropertyChanges(FindingType):
    model = PropertyChange
    owner = (
        "JOIN tailrace_protection_watchedproperty p ON p.id = f.property_id"
        " JOIN auth_user u ON u.id = p.user_id"
    )
    is_new = "f.noticed_at > %(before)s"
    pause = timedelta(hours=72)

    def of_alert(self, alert: Alert) -> QuerySet[PropertyChange]:
        return PropertyChange.objects.filter(property=_id_in(alert.source), alert=alert.pk)

    def details(self, alert: Alert, rows: QuerySet[PropertyChange]) -> dict[str, Any]:
        documents = rows.order_by("pk").values_list("document_id", flat=True)
        return {
            "property": _id_in(alert.source),
            "changes": rows.count(),
            "document": list(documents[:MOST_NAMES]),
        }

    def findings(self, ids: Iterable[int]) -> list[Finding]:
        rows = PropertyChange.objects.filter(pk__in=ids).select_related("property").order_by("pk")
        return _grouped(
            (row.kind, row.property.user_id, f"property:{row.property_id}", row) for row in rows
        )


class RemovalMoves(FindingType):
    model = RemovalChange
    owner = (
        "JOIN tailrace_protection_removalrequest r ON r.id = f.request_id"
        " JOIN auth_user u ON u.id = r.user_id"
    )
    is_new = "true"
    is_finding = "f.alert_id IS NOT NULL"

    def of_alert(self, alert: Alert) -> QuerySet[RemovalChange]:
        return RemovalChange.objects.filter(request=_id_in(alert.source), alert=alert.pk)

    def details(self, alert: Alert, rows: QuerySet[RemovalChange]) -> dict[str, Any]:
        return {"removal": _id_in(alert.source), "broker": alert.details.get("broker", "")}

    def severity(self, alert: Alert, rows: QuerySet[RemovalChange]) -> int:
        return alert.severity

    def findings(self, ids: Iterable[int]) -> list[Finding]:
        rows = RemovalChange.objects.filter(pk__in=ids, alert__isnull=False)
        alerts = rows.values_list("pk", "alert")
        known = Alert.objects.in_bulk([alert for _id, alert in alerts])
        return [
            Finding(row.user_id, row.kind, row.source, Severity(row.severity), ids=(id,))
            for id, alert in alerts
            if (row := known.get(alert or 0)) is not None
        ]


EXPOSURES, PROPERTY_CHANGES, REMOVAL_MOVES = Exposures(), PropertyChanges(), RemovalMoves()
TYPES = (EXPOSURES, PROPERTY_CHANGES, REMOVAL_MOVES)


def type_of(kind: str) -> FindingType:
    """Return the type of the findings in alerts of this kind."""
    if kind in ChangeKind.values:
        return PROPERTY_CHANGES
    return REMOVAL_MOVES if kind.startswith("removal_") else EXPOSURES


def _id_in(source: str) -> int:
    """Return the id in the source of an alert, such as `property:7`; 0 if there is none."""
    id = source.rpartition(":")[2]
    return int(id) if id.isdecimal() else 0


def _grouped(rows: Iterable[tuple[str, int, str, Any]]) -> list[Finding]:
    groups: dict[tuple[int, str, str], list[Any]] = defaultdict(list)
    for kind, user, source, row in rows:
        groups[user, kind, source].append(row)
    return [
        Finding(
            *key,
            severity=Severity(max(row.severity for row in group)),
            ids=tuple(row.pk for row in group),
        )
        for key, group in sorted(groups.items())
    ]
