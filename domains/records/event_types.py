"""The event types of records: from the request of a source to the published record."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from pydantic import BaseModel, ConfigDict

from tailrace.domains.records.models.visibility import readers_of_depositions, readers_of_records
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.types.subscribable import Subscribable

SOURCE = "records"


def submitter(event: Recorded) -> str:
    """Return the user or the source that submitted the deposition of this event, or "". It is the
    lane of the jobs of each step, so that users do not wait behind a harvest."""
    account = event.raw_payload.get("account")
    if account is not None:
        return f"user/{account}"
    source, colon, _ = str(event.raw_payload.get("identifier", "")).partition(":")
    return source if colon else ""


class SourceRequested(EventType):
    """Pull of a source requested, by a user or by its schedule"""

    name = "records.source_requested"
    api_records = False

    class Payload(BaseModel):
        """The source's id and name."""

        model_config = ConfigDict(extra="forbid")
        source: int
        name: str

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"source/{payload['source']}"


class DepositionEvent(Subscribable, EventType):
    """Something happened to a deposition"""

    abstract = True
    family_title = "Depositions of records"
    api_records = False
    can_mail = can_web = True

    class Payload(BaseModel):
        """The deposition, the identifier of its record, and its origin: the depositor's user id or
        the source's name. When the user is deleted, only the deposition's id is kept."""

        model_config = ConfigDict(extra="forbid")
        deposition: int
        identifier: str = ""
        account: int | None = None
        source: str = ""

    @classmethod
    def notifies(cls, event: Recorded) -> bool:
        """Whether the deposition has a depositor, and was not harvested."""
        return event.raw_payload.get("account") is not None

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the readers: everybody if the deposition was harvested, else the depositor and
        users with the permission to view depositions."""
        return readers_of_depositions(events)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"deposition/{payload['deposition']}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}/records/depositions/{event.payload.deposition}"


class DepositionSubmitted(DepositionEvent):
    """Deposition submitted"""

    name = "records.deposition_submitted"


class ValidationCompleted(DepositionEvent):
    """Deposition validated: its depositor is notified of problems"""

    name = "records.validation_completed"
    receiver_roles = ["depositor"]

    class Payload(DepositionEvent.Payload):
        """The deposition, and the number of problems in its metadata."""

        problems: int = 0

    @classmethod
    def notifies(cls, event: Recorded) -> bool:
        """Whether the deposition has a depositor and problems to correct."""
        return super().notifies(event) and event.raw_payload.get("problems", 0) > 0


class DepositionApproved(DepositionEvent):
    """Deposition approved"""

    name = "records.deposition_approved"


class DepositionRejected(DepositionEvent):
    """Deposition rejected by a curator"""

    name = "records.deposition_rejected"
    receiver_roles = ["depositor"]

    class Payload(DepositionEvent.Payload):
        """The deposition, and the curator's reason."""

        reason: str = ""


class RecordPublished(Subscribable, EventType):
    """Record published, changed or withdrawn"""

    name = "records.record_published"
    api_records = False
    receiver_roles = ["depositor"]
    can_mail = can_web = can_rss = True

    class Payload(BaseModel):
        """The record and its published version. When the owner is deleted, only the record's id is
        kept."""

        model_config = ConfigDict(extra="forbid")
        record: int
        identifier: str = ""
        version: int = 0
        deposition: int = 0
        account: int | None = None
        title: str = ""
        is_deleted: bool = False

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the readers: everybody if the record is open, else its owner and users with the
        permission to view records."""
        return readers_of_records(events)

    @classmethod
    def notifies(cls, event: Recorded) -> bool:
        """Whether the record has an owner, and was not harvested."""
        return event.raw_payload.get("account") is not None

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"record/{payload['record']}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}/records/{event.payload.record}"
