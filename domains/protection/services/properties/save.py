"""Store a reading of a property, with its changes and the alerts about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Case, When

from tailrace.db.query import database_now
from tailrace.domains.protection.alerts.findings import PROPERTY_CHANGES
from tailrace.domains.protection.alerts.raising import lock_pauses, raise_alerts
from tailrace.domains.protection.models import (
    PropertyChange,
    PropertySnapshot,
    WatchedProperty,
)
from tailrace.domains.protection.services.properties.compare import Change, compare, merged
from tailrace.domains.protection.services.properties.documents import (
    Document,
    Reading,
    fingerprint,
    hash_of,
)

MAX_DOCUMENTS = 1000
"""Documents of a property that are watched; if there are more, the newest."""
SHOWN_NAMES = 20


@dataclass(frozen=True, slots=True)
class Saved:
    """The number of changes and alerts of a stored reading."""

    changes: int = 0
    alerts: int = 0


def save(row: WatchedProperty, reading: Reading, *, began: datetime, run: int) -> Saved | None:
    """Store a reading that began at `began`, in one transaction. Return None if the property is
    gone.

    A reading that began before the stored one is ignored, since its records may be older. Storing a
    reading again changes nothing.
    """
    with transaction.atomic():
        # The lock of the row serializes the readings of a property.
        rows = WatchedProperty.objects.filter(pk=row.pk, user=row.user_id)
        if not rows.select_for_update(no_key=True).exists():
            return None
        snapshot = PropertySnapshot.objects.filter(property=row.pk).first()
        saved = Saved()
        if snapshot is None or snapshot.read_at < began:
            saved = _store(row, snapshot, reading, began)
        rows.update(
            scanned_at=database_now(),
            scanned_by=run,
            concerned_at=Case(When(concerned_at__gte=began, then="concerned_at"), default=None),
        )
        return saved


def _store(
    row: WatchedProperty, snapshot: PropertySnapshot | None, reading: Reading, began: datetime
) -> Saved:
    stored = snapshot.documents if snapshot else {}
    old = {id: Document.from_json(id, fields) for id, fields in stored.items()}
    documents = merged(old, reading.documents, MAX_DOCUMENTS)
    values: dict[str, Any] = {
        "watermark": reading.watermark or (snapshot.watermark if snapshot else ""),
        "complete": reading.complete,
        "read_at": began,
    }
    hash = hash_of(documents)
    if snapshot is not None and snapshot.hash == hash:
        PropertySnapshot.objects.filter(pk=row.pk).update(**values)
        return Saved()
    values |= {"hash": hash, "documents": {id: doc.to_json() for id, doc in documents.items()}}
    PropertySnapshot.objects.update_or_create(property_id=row.pk, defaults=values)
    if snapshot is None:
        return Saved()
    complete = snapshot.complete and reading.complete
    changes = _record(row, compare(old, documents, complete=complete))
    alerts = raise_alerts(PROPERTY_CHANGES.findings(change.pk for change in changes))
    return Saved(len(changes), len(alerts))


def _record(row: WatchedProperty, changes: Sequence[Change]) -> list[PropertyChange]:
    """Store the changes, once per document and kind; return the rows that are new or corrected."""
    lock_pauses({(row.user_id, str(each.kind), f"property:{row.pk}") for each in changes})
    ids = [change.document.id for change in changes]
    rows = PropertyChange.objects.filter(property=row.pk, document_id__in=ids)
    recorded = {(each.document_id, each.kind): each for each in rows}
    new, corrected = [], []
    for change in changes:
        before = recorded.get((change.document.id, change.kind))
        values = {
            "severity": change.severity,
            "details": _details(change),
            "fingerprint": fingerprint(change.document),
        }
        if before is None:
            key = {"document_id": change.document.id, "kind": change.kind}
            new.append(PropertyChange(property_id=row.pk, **key, **values))
        elif before.fingerprint != values["fingerprint"]:
            for name, value in values.items():
                setattr(before, name, value)
            before.save(update_fields=[*values])
            corrected.append(before)
    return PropertyChange.objects.bulk_create(new) + corrected


def _details(change: Change) -> dict[str, Any]:
    document = change.document
    names = {
        "grantors": document.grantors,
        "grantees": document.grantees,
        "owners_before": change.owners_before,
    }
    texts = {
        "type": document.type,
        "recorded": document.recorded[:10],
        "dated": document.dated[:10],
        "amount": document.amount,
    }
    details: dict[str, Any] = {name: text for name, text in texts.items() if text}
    for name, people in names.items():
        if people:
            details[name] = list(people[:SHOWN_NAMES])
        if len(people) > SHOWN_NAMES:
            details[f"more_{name}"] = len(people) - SHOWN_NAMES
    return details
