"""acknowledge: an operator has seen what is odd about an event."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from events import clock
from events.models import Event
from jobs import audit

PERMISSION = "events.acknowledge_event"


def acknowledge(user: Any, id: int) -> bool:
    """Take an event off the flagged ones; return False if it was not among them."""
    if not user.has_perm(PERMISSION):
        raise PermissionDenied(f"this takes the permission {PERMISSION}")
    with transaction.atomic():
        changed = Event.objects.flagged().filter(pk=id).update(acknowledged_at=clock.now())
        if changed:
            audit.record(user, Event, "acknowledged", [(id, f"event {id}")])
    return bool(changed)
