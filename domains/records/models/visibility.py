"""Decide which users may see depositions and records. All pages, the API and the search use this.

Everybody may see open records, which include harvested records. Only their depositors may see
depositions and closed records. The permissions `tailrace_records.view_deposition` and
`tailrace_records.view_record` allow a user to see all.
"""

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from tailrace.domains.records.models import Deposition, DepositionFile, Record
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers

VIEW_RECORDS = "tailrace_records.view_record"
VIEW_DEPOSITIONS = "tailrace_records.view_deposition"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


def visible_records(user: User | AnonymousUser) -> QuerySet[Record]:
    """Return the records that the user may see, including withdrawn records."""
    if user.has_perm(VIEW_RECORDS):
        return Record.objects.all()
    if user.pk is None:
        return Record.objects.filter(access=Record.Access.OPEN)
    return Record.objects.filter(Q(access=Record.Access.OPEN) | Q(owner_id=user.pk))


def visible_depositions(user: User) -> QuerySet[Deposition]:
    """Return the depositions that the user may see."""
    if user.has_perm(VIEW_DEPOSITIONS):
        return Deposition.objects.all()
    return Deposition.objects.filter(submitted_by=user)


def visible_files(user: User) -> QuerySet[DepositionFile]:
    """Return the files that the user may read: files of visible depositions and visible records."""
    published = visible_records(user).filter(is_deleted=False).values("deposition")
    visible = visible_depositions(user).values("pk")
    return DepositionFile.objects.filter(Q(deposition__in=visible) | Q(deposition__in=published))


def readers_of_depositions(events: Iterable[Recorded]) -> dict[int, Readers | None]:
    """Return the readers of each event of a deposition; None (everybody) if it was harvested."""
    payloads = {event.id: event.raw_payload for event in events}
    accounts: set[int] = {payload.get("account") or 0 for payload in payloads.values()}
    name_of = dict(User.objects.filter(pk__in=accounts).values_list("pk", "username"))
    viewers = _usernames_with_permission(VIEW_DEPOSITIONS)
    return {
        id: None
        if payload.get("source")
        else Readers.of([*viewers, name_of.get(payload.get("account") or 0, "")])
        for id, payload in payloads.items()
    }


def readers_of_records(events: Iterable[Recorded]) -> dict[int, Readers | None]:
    """Return the readers of each event of a record; None (everybody) while the record is open."""
    record_of: dict[int, int] = {event.id: event.raw_payload["record"] for event in events}
    rows = Record.objects.filter(pk__in=set(record_of.values()))
    access_of = {
        pk: (access, name or "")
        for pk, access, name in rows.values_list("pk", "access", "owner__username")
    }
    viewers = _usernames_with_permission(VIEW_RECORDS)
    closed = (Record.Access.CLOSED, "")
    return {
        id: None
        if access_of.get(pk, closed)[0] == Record.Access.OPEN
        else Readers.of([*viewers, access_of.get(pk, closed)[1]])
        for id, pk in record_of.items()
    }


def _usernames_with_permission(permission: str) -> list[str]:
    users = User.objects.with_perm(permission, backend=_BACKEND)
    return list(users.values_list("username", flat=True))
