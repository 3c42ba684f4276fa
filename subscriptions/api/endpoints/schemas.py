"""The schemas of requests and responses about webhook endpoints."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tailrace.subscriptions.channels.webhook.history.message_list import ListName
from tailrace.subscriptions.channels.webhook.operations import filters
from tailrace.web.api.pagination import PageParams
from tailrace.web.api.schemas import In, Out, Time

Url = Annotated[str, Field(max_length=2000, description="https://…, a public address")]


class EndpointIn(In):
    url: Url
    description: str = Field("", max_length=500)
    """Your name for it."""
    event_types: list[str] = Field([], max_length=filters.MAX_TYPES, examples=[["builds.build"]])
    """Only these event types and families; empty: all that you are subscribed to."""
    subject_pattern: str = Field("", max_length=filters.MAX_PATTERN, examples=["devel:*"])
    """Only these subjects, where * stands for any text; empty: all."""


class EndpointChange(EndpointIn):
    """The fields to change. Missing fields are not changed."""

    url: Url = ""


class EndpointOut(Out):
    id: int
    url: str
    description: str
    event_types: list[str]
    """The event types and families that are sent to it; empty: all."""
    subject_pattern: str
    """The subjects that are sent to it; empty: all."""
    state: str
    """enabled, paused (deliveries wait) or disabled (nothing is sent)."""
    reason: str
    """Why the endpoint is not enabled."""
    confirmed: bool
    """If false, nothing is sent until the URL has answered a challenge (`…/confirm`)."""
    failing_since: datetime | None
    created_at: datetime


class Secret(Out):
    secret: str
    """The signing key (`whsec_…`). It is shown only once."""


class NewEndpoint(EndpointOut, Secret):
    pass


class DeliveryOut(Out):
    """A delivery attempt and its result."""

    id: int
    event_id: int | None
    """Null for a test."""
    message_id: str
    """`webhook-id`, the same for all attempts."""
    attempt: int
    at: datetime
    milliseconds: int
    status: int | None
    outcome: str
    """ok, retry, failed or gone."""
    error: str
    answer: str
    """The beginning of the response body."""


class MessagesParams(PageParams):
    """Query parameters of the list of messages."""

    list: ListName | None = Field(
        default=None,
        description=(
            "`waiting` includes messages that are being sent, `failed` includes cancelled and"
            " skipped messages; empty: all messages"
        ),
    )


class MessageOut(Out):
    """An event or a test for the endpoint, and its state."""

    id: int
    event_id: int | None
    event_type: str
    """Empty if you may no longer read the event."""
    title: str
    message_id: str
    """`webhook-id`."""
    state: str
    """waiting, sending, delivered, failed, cancelled or skipped."""
    reason: str
    created_at: datetime
    next_try: datetime | None


class MessageDetails(MessageOut):
    body: str
    """The message's body, indented; empty for a test, and if you may no longer read the event."""
    tries: list[DeliveryOut]
    """Newest first."""


class RecoverIn(In):
    what: Literal["failed", "missing"]
    """`failed`: messages that failed, were cancelled or skipped; `missing`: events without one."""
    since: Time


class RecoveryOut(Out):
    job: int
    what: str
    since: datetime
    state: str
    """The state of the recovery's job."""
    sent: int | None = None
    examined: int | None = None
    whole: bool | None = None
    """If false, the limit of a recovery was reached, and older messages were not examined."""


class SampleOut(Out):
    event_type: str
    body: str
    """The exact body of a message for such an event."""


class TestIn(In):
    event_type: str = ""
    """Send a sample of this type; empty: a message of the type `tailrace.test`."""


class TestOut(Out):
    """A test delivery, which a job sends."""

    job: int
    done: bool = False
    """Whether the job has ended."""
    delivery: DeliveryOut | None = None


class Replayed(Out):
    job: int
    """The job that repeats the delivery."""
