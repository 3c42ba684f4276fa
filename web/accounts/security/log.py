"""Write the security log: each entry is an event and a line in the application log. Call `record`
in the transaction of the change, so that both are committed or rolled back together."""

from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.rate_limit import take_from_window
from tailrace.web.accounts.security import request
from tailrace.web.event_types import SecurityEvent

log = structlog.get_logger(__name__)

WINDOW_SECONDS = 3600.0
ENTRIES_PER_WINDOW = 20


def record(event_type: type[SecurityEvent], user: User | None = None, **fields: Any) -> None:
    """Publish a security event about `user`; `fields` are further fields of its payload."""
    payload = {"address": request.client_address(request.current()), **fields}
    if user is not None:
        payload |= {"user": user.get_username(), "user_id": user.pk}
    actor = request.actor()
    with transaction.atomic():
        [event] = publish(NewEvent(event_type, payload, actor=actor))
        transaction.on_commit(
            lambda: log.info(event.type, actor=actor, event_id=event.id, **event.raw_payload)
        )


def record_some(
    key: str, event_type: type[SecurityEvent], user: User | None = None, **fields: Any
) -> None:
    """Record the event, at most ENTRIES_PER_WINDOW times an hour for each `key`: for events that
    strangers can cause at will."""
    name = f"security:{key}"
    with transaction.atomic():
        if take_from_window({name: 1}, ENTRIES_PER_WINDOW, WINDOW_SECONDS)[name]:
            record(event_type, user, **fields)
