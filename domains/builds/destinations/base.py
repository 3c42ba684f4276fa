"""The base class of buses, the messages they send, and their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.jobs.destinations.delivery import NOT_TRIED, DeliveryResult, DeliveryStatus
from tailrace.jobs.destinations.together import Together
from tailrace.net.url_secrets import shown_url


@dataclass(frozen=True, slots=True)
class Message:
    """The message about one event. If it is sent again after a crash, it has the same id."""

    id: int
    """The event's id."""
    key: str
    """The routing key, e.g. `opensuse.obs.package.commit`."""
    body: bytes
    """JSON or text, UTF-8."""
    is_metric: bool = False
    """Whether the body is a measurement (text) instead of the event itself (JSON)."""
    raw_type: str = ""
    """The event type's name in a backend's notification log; empty if it has none."""
    occurred_at: int = 0
    """When the event happened, in seconds since 1970."""

    @property
    def message_id(self) -> str:
        """The id by which receivers recognize a repeated message."""
        return f"{self.id}-metric" if self.is_metric else str(self.id)

    @property
    def content_type(self) -> str:
        return "text/plain" if self.is_metric else "application/json"


class Unavailable(Exception):
    """The destination cannot be reached or used; the message contains no secrets."""


class Misconfigured(Unavailable):
    """The destination's URL or secret is invalid. An operator has to change a setting."""


class UnknownBus(LookupError):
    """BUS_BACKENDS has no bus of this name, or no Bus class has this URL scheme."""


class Bus:
    """One destination. A subclass names its URL schemes and implements `send` or `deliver`.

    An instance belongs to one process and may keep a connection between calls. A call must end
    within a few dozen seconds, even if the destination does not answer.
    """

    schemes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def takes(cls, event_type: type[BuildsEvent]) -> bool:
        """Return whether events of this type are sent to this kind of bus."""
        return bool(event_type.bus_key)

    def __init__(self, name: str, url: str) -> None:
        """Raise Misconfigured if the URL (of BUS_BACKENDS) or the secret is invalid."""
        self.name = name
        self.url = url
        self.parts = urlsplit(url)
        self._send_together = Together(self._send, own_thread=True)

    async def deliver(self, message: Message) -> DeliveryResult:
        """Send one message and return its result. By default, concurrent calls share one call of
        `send`, in a thread of this bus, so that it does not delay other buses."""
        return await self._send_together(message)

    def _send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        try:
            return self.send(messages)
        except Unavailable as error:
            unavailable = DeliveryResult(DeliveryStatus.UNAVAILABLE, str(error))
            return [unavailable] + [NOT_TRIED] * (len(messages) - 1)

    def send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        """Send the messages in order and return their results in the same order. Raise Unavailable
        if no message was sent. It is called in a thread of this bus."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection, if one is open."""

    def describe(self, error: BaseException | str) -> str:
        """Return the error's text with the destination's URL, without secrets."""
        text = " ".join(str(error).split()) or type(error).__name__
        tokens = (value for _key, value in parse_qsl(self.parts.query))
        for secret in (self.parts.password, *tokens):
            if secret and len(secret) > 3:
                text = text.replace(secret, "***")
        return f"{shown_url(self.url)}: {text}"[:500]
