"""Store breaches as sources describe them, and their severity by the data that was lost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields

from tailrace.domains.protection.models import Breach, Severity
from tailrace.domains.protection.services.providers.source import FoundBreach

_FIELDS = [field.name for field in fields(FoundBreach) if field.name != "name"]
CRITICAL = ("social security number", "credit card", "payment card", "debit card", "password")
WARNING = ("email", "phone")
HARMLESS = ("password hint", "password strength", "email message")
"""Parts of the names of data classes that contain a word above, but are less severe."""


def store_breaches(source: str, breaches: Sequence[FoundBreach]) -> Mapping[str, int]:
    """Store these breaches of the source in the caller's transaction; return their ids by name.

    Unchanged rows are not written.
    """
    wanted = {each.name: each for each in breaches}
    known = Breach.objects.filter(source=source, name__in=list(wanted))
    stored = {row.name: row for row in known}
    changed = []
    for name, each in sorted(wanted.items()):
        values = asdict(each) | {"data_classes": list(each.data_classes)}
        row = stored.get(name)
        if row is None or any(getattr(row, key) != value for key, value in values.items()):
            changed.append(Breach(source=source, **values))
    rows = Breach.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["source", "name"],
        update_fields=_FIELDS,
    )
    return {name: row.pk for name, row in stored.items()} | {row.name: row.pk for row in rows}


def severity_of(data_classes: Iterable[str]) -> Severity:
    """Return the severity of a breach with these classes of lost data, as a source names them."""
    worst = Severity.INFO
    for name in data_classes:
        words = name.lower()
        if any(harmless in words for harmless in HARMLESS):
            continue
        if any(word in words for word in CRITICAL):
            return Severity.CRITICAL
        if any(word in words for word in WARNING):
            worst = Severity.WARNING
    return worst
