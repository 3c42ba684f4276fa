"""The event types of protection, which notify a user of an alert. They contain no watched value."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from pydantic import BaseModel, ConfigDict

from tailrace.domains.protection.alerts.texts import text_of
from tailrace.domains.protection.models import Alert, Severity
from tailrace.events.privacy.visibility import only_user
from tailrace.events.publish import NewEvent, Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.types.subscribable import Subscribable

SOURCE = "protection"


class AlertEvent(Subscribable, EventType):
    """An alert of protection. Only its user may read it."""

    abstract = True
    family_title = "Protection alerts"
    api_records = False
    receiver_roles = ["protected_person"]
    can_mail = can_web = True
    can_rss = False

    class Payload(BaseModel):
        """The alert, its user and the finding, as ids, names and counts. Only the alert's id
        remains when the account is deleted."""

        model_config = ConfigDict(extra="forbid")
        alert: int
        account: int | None = None
        kind: str = ""
        severity: int = 0
        details: dict[str, Any] = {}

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the account's user as the only reader, or no reader once the event is erased."""
        return only_user(events, "account")

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `alert/7`."""
        return f"alert/{payload['alert']}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}{text_of(event.raw_payload.get('kind', '')).path}"

    @classmethod
    def source_id(cls, alert: int, notice: int = 0) -> str:
        """Return the source_id of the event of the alert's first notice, or of a further one."""
        return f"alert/{alert}/{notice}" if notice else f"alert/{alert}"

    @classmethod
    def source_ids(cls, alert: Alert) -> list[str]:
        """Return the source_ids of all events of the alert."""
        return [cls.source_id(alert.pk, notice) for notice in range(alert.further_notices + 1)]


class AlertRaised(AlertEvent):
    """Protection alert, warning or critical"""

    name = "protection.alert_raised"
    urgent = True


class AlertNoted(AlertEvent):
    """Protection alert, for information"""

    name = "protection.alert_noted"
    can_push = can_sms = False
    default_pace = "daily"


def alert_event(alert: Alert, details: Mapping[str, Any], severity: int) -> NewEvent:
    """Return the event of the alert's next notice, with the details and the severity of the
    findings that the notice names."""
    event_type = AlertNoted if severity == Severity.INFO else AlertRaised
    payload = {
        "alert": alert.pk,
        "account": alert.user_id,
        "kind": alert.kind,
        "severity": severity,
        "details": dict(details),
    }
    notice = 0 if alert.announced_at is None else alert.further_notices + 1
    source_id = AlertEvent.source_id(alert.pk, notice)
    return NewEvent(event_type, payload, source=SOURCE, source_id=source_id, actor="")
