"""A bus: where events are announced. One class per kind, chosen by the scheme of its URL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from jobs.destination import SENT as SENT
from jobs.destination import UNTRIED as UNTRIED
from jobs.destination import Fate as Fate
from jobs.destination import Verdict

Delivery = Verdict


@dataclass(frozen=True, slots=True)
class Message:
    """An announcement of one event. Sent again after a crash, it bears the same id."""

    id: int
    """The event's id."""
    key: str
    """The routing key, e.g. `opensuse.obs.package.commit`."""
    body: bytes
    """JSON, UTF-8."""

    @classmethod
    def build(
        cls, id: int, namespace: str, bus_key: str, keys: Sequence[str], payload: Mapping[str, Any]
    ) -> Self:
        """Build one: the payload's `keys` in their order; those that it lacks are left out."""
        body = {key: payload[key] for key in keys if key in payload}
        key = f"{namespace}.{bus_key}" if namespace else bus_key
        return cls(id, key, json.dumps(body, ensure_ascii=False).encode(errors="replace"))


class Down(Exception):
    """The destination cannot be reached or used; the text says why, without secrets."""


class Misconfigured(Down):
    """The destination's URL or secret is wrong: nothing helps but another setting."""


class UnknownBus(LookupError):
    """No kind of bus has this scheme, or no bus this name."""


_kinds: dict[str, type["Bus"]] = {}


class Bus:
    """One destination. Subclasses name their URL schemes and send; they register themselves.

    An instance lives in one process and may keep a connection from call to call. `send` takes
    at most a few dozen seconds, whatever the destination does.
    """

    schemes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for scheme in cls.schemes:
            _kinds[scheme] = cls

    def __init__(self, name: str, url: str) -> None:
        """Take the name and URL of BUS_BACKENDS; raise Misconfigured if it cannot work."""
        self.name = name
        self.url = url
        self.parts: SplitResult = urlsplit(url)

    def send(self, messages: Sequence[Message]) -> list[Delivery]:
        """Send the messages in their order; return the fate of each, in the same order.

        Raises Down if none was sent.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is kept from call to call."""

    def why(self, error: BaseException) -> str:
        """Put an error into words that name the destination and none of its secrets."""
        said = " ".join(str(error).split()) or type(error).__name__
        for secret in secrets_of(self.parts):
            said = said.replace(secret, "***")
        return f"{redacted(self.url)}: {said}"[:500]


def kind(url: str) -> type[Bus]:
    """Return the class for a URL, or raise UnknownBus naming the schemes there are."""
    scheme = urlsplit(url).scheme
    if scheme not in _kinds:
        known = ", ".join(f"{name}://" for name in sorted(_kinds))
        raise UnknownBus(f"no bus speaks {scheme}:// (known: {known})")
    return _kinds[scheme]


def secrets_of(parts: SplitResult) -> list[str]:
    """Return the password and the values of the query: tokens travel there."""
    values = [value for _key, value in parse_qsl(parts.query)]
    return [secret for secret in (parts.password, *values) if secret and len(secret) > 3]


def redacted(url: str) -> str:
    """Return the URL as it may be shown: without password, and without values in its query."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    netloc = f"{userinfo.partition(':')[0]}:***@{host}" if at and ":" in userinfo else parts.netloc
    query = urlencode([(key, "***") for key, _value in parse_qsl(parts.query)], safe="*")
    return urlunsplit(parts._replace(netloc=netloc, query=query))
