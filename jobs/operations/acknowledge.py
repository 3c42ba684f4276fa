"""Acknowledge the problem of an event, so that it is no longer flagged."""

from typing import Any

from django.core.exceptions import PermissionDenied

from tailrace.db import clock, row_wait
from tailrace.events.models import Event
from tailrace.jobs.runtime import audit

PERMISSION = "tailrace_events.acknowledge_event"


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
