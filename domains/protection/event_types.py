"""The event types of protection: what a person is told. They hold no watched value."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict

from domains.protection.models import Alert
from events.publish import NewEvent
from events.readers import Readers
from events.types import EventType

SOURCE = "protection"


class AlertRaised(EventType):
    """Protection alert"""

    name = "protection.alert_raised"
    api_records = False

    class Payload(BaseModel):
        """The alert, its user, and what was found, by ids, names and counts."""

        model_config = ConfigDict(extra="forbid")
        alert: int
        account: int | None = None
        kind: str = ""
        severity: int = 0
        details: dict[str, Any] = {}

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the account's user alone; nobody once the event is erased."""
        user_of = {event.id: event.raw_payload.get("account") for event in events}
        users = User.objects.filter(pk__in={user for user in user_of.values() if user})
        names = dict(users.values_list("pk", "username"))
        return {id: Readers.of([names.get(user, "")]) for id, user in user_of.items()}

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `alert/7`."""
        return f"alert/{payload['alert']}"

    @classmethod
    def new_event(cls, alert: Alert) -> NewEvent:
        """Return the event to publish for this alert; it has only one."""
        payload = {
            "alert": alert.pk,
            "account": alert.user_id,
            "kind": alert.kind,
            "severity": alert.severity,
            "details": alert.details,
        }
        source_id = f"alert/{alert.pk}"
        return NewEvent(cls, payload, source=SOURCE, source_id=source_id, actor="")
