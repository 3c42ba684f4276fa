"""Store breaches as sources describe them."""

from collections.abc import Mapping, Sequence

from tailrace.domains.protection.models import Breach
from tailrace.domains.protection.services.providers.source import FoundBreach

_FIELDS = (
    "title",
    "domain",
    "breached_on",
    "added_at",
    "modified_at",
    "data_classes",
    "description",
    "accounts",
)


def store_breaches(source: str, breaches: Sequence[FoundBreach]) -> Mapping[str, int]:
    """Store these breaches of the source in the caller's transaction; return their ids by name.

    Unchanged rows are not written.
    """
    wanted = {each.name: each for each in breaches}
    known = Breach.objects.filter(source=source, name__in=list(wanted))
    stored = {row.name: row for row in known}
    changed = [
        _row(source, each)
        for name, each in sorted(wanted.items())
        if name not in stored or _differs(stored[name], each)
    ]
    rows = Breach.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["source", "name"],
        update_fields=_FIELDS,
    )
    return {name: row.pk for name, row in stored.items()} | {row.name: row.pk for row in rows}


def _row(source: str, breach: FoundBreach) -> Breach:
    values = {name: getattr(breach, name) for name in _FIELDS}
    return Breach(source=source, name=breach.name, **_storable(values))


def _differs(row: Breach, breach: FoundBreach) -> bool:
    values = _storable({name: getattr(breach, name) for name in _FIELDS})
    return any(getattr(row, name) != value for name, value in values.items())


def _storable(values: dict[str, object]) -> dict[str, object]:
    return values | {"data_classes": list(values["data_classes"])}  # type: ignore[call-overload]
