"""Write the security log: events of the platform itself, and a line each in the log.

`record` joins the transaction of the caller: an act that is rolled back leaves no entry. Call it in
the transaction of the act, so that an act without its entry is rolled back, too.
"""

from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.rate_limit import take_from_window
from tailrace.web.event_types import SecurityEvent
from tailrace.web.security import request

log = structlog.get_logger(__name__)

WINDOW_SECONDS = 3600.0
ENTRIES_PER_WINDOW = 20


def record(event_type: type[SecurityEvent], user: User | None = None, **fields: Any) -> None:
    """Publish an event about `user` with these further fields of its payload."""
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
    """Record it, unless there were ENTRIES_PER_WINDOW entries with this key in the last hour.

    For what others can cause at will: they must not be able to fill the log.
    """
    name = f"security:{key}"
    with transaction.atomic():
        if take_from_window({name: 1}, ENTRIES_PER_WINDOW, WINDOW_SECONDS)[name]:
            record(event_type, user, **fields)
