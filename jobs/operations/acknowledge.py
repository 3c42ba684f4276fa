"""Acknowledge the problems of events, so that they are no longer flagged."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet

from tailrace.db import clock, row_wait
from tailrace.db.engine_database import home
from tailrace.events.models import Event
from tailrace.jobs.runtime import audit

PERMISSION = "tailrace_events.acknowledge_event"
MOST = 10_000
"""The maximum number of events that are acknowledged at once, the oldest first."""


def acknowledge(user: Any, id: int) -> bool:
    """Acknowledge a flagged event; return False if it is not flagged. Raises Blocked if
    another transaction holds the event's row for long."""
    if not user.has_perm(PERMISSION):
        raise PermissionDenied(f"you need the permission {PERMISSION}")
    with row_wait.bounded(Event, id=id):
        changed = Event.objects.flagged().filter(pk=id).update(acknowledged_at=clock.now())
        if changed:
            audit.record(user, Event, "acknowledged", [(id, f"event {id}")])
    return bool(changed)


def acknowledge_all(user: Any, events: QuerySet[Event], what: str) -> int:
    """Acknowledge the flagged ones of these events, at most MOST; return their number. `what`
    describes them in the audit log. Events that another transaction has locked stay flagged."""
    if not user.has_perm(PERMISSION):
        raise PermissionDenied(f"you need the permission {PERMISSION}")
    flagged = events & Event.objects.flagged()
    with transaction.atomic(using=home()):
        rows = flagged.order_by("id").select_for_update(skip_locked=True, of=("self",))
        ids = list(rows.values_list("pk", flat=True)[:MOST])
        if ids:
            Event.objects.filter(pk__in=ids).update(acknowledged_at=clock.now())
            audit.record_many(user, Event, "acknowledged", len(ids), what)
    return len(ids)
