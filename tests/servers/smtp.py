"""A real SMTP server on a free port, with faults that a test sets."""

import asyncio
import email.policy
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class Received:
    """A message that the server accepted, with its envelope."""

    sender: str
    recipients: list[str]
    message: EmailMessage
    connection: int


@dataclass
class MailServer:
    """The received messages, and the faults."""

    received: list[Received] = field(default_factory=list)
    recipient_reply: Callable[[str], str] = lambda address: ""
    """By address: the reply to RCPT TO, e.g. `450 busy`; empty: accept it."""
    data_reply: str = ""
    """The reply after DATA; empty: accept the message."""
    drop_after_data: bool = False
    """Read the message, then hang up without a reply."""
    seconds_after_data: float = 0
    """How long the server is silent before its reply after DATA."""
    before_250: Callable[[], None] = lambda: None
    """Called when the message is accepted, before its 250 is sent."""
    refused: int = 0
    connections: int = 0
    port: int = 0
    transports: list[asyncio.Transport] = field(default_factory=list)
    """Of all connections, whether they are open or not."""
    loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"smtp://{self.name}"

    def hang_up(self) -> None:
        """Break all connections that are open now."""
        assert self.loop is not None
        for transport in self.transports:
            self.loop.call_soon_threadsafe(transport.abort)

    def settings(self) -> dict[str, Any]:
        """Return the settings with which Django sends to it."""
        return {
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "EMAIL_HOST": "127.0.0.1",
            "EMAIL_PORT": self.port,
            "EMAIL_HOST_USER": "",
            "EMAIL_HOST_PASSWORD": "",
            "EMAIL_TIMEOUT": 5,
        }

    def addressed(self) -> list[str]:
        """Return the recipients of all accepted messages."""
        return [address for mail in self.received for address in mail.recipients]


class _Hooks:
    """The hooks that aiosmtpd calls."""

    def __init__(self, state: MailServer) -> None:
        self.state = state

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: Any
    ) -> Any:
        session.host_name = hostname
        self.state.connections += 1
        assert isinstance(server.transport, asyncio.Transport)
        self.state.transports.append(server.transport)
        session.number = self.state.connections  # type: ignore[attr-defined]
        return responses

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if reply := self.state.recipient_reply(address):
            self.state.refused += 1
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        state = self.state
        await asyncio.sleep(state.seconds_after_data)
        if state.drop_after_data:
            state.refused += 1
            assert server.transport is not None
            server.transport.abort()
            return "250 OK"
        if state.data_reply:
            state.refused += 1
            return state.data_reply
        state.received.append(_received(session, envelope))
        state.before_250()
        return "250 OK"


def _received(session: Session, envelope: Envelope) -> Received:
    message = email.message_from_bytes(envelope.content or b"", policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return Received(
        sender=str(envelope.mail_from),
        recipients=list(envelope.rcpt_tos),
        message=message,
        connection=session.number,  # type: ignore[attr-defined]
    )


@contextmanager
def mail_server(port: int = 0) -> Iterator[MailServer]:
    """Run a server on this port, or a free one, until the block ends."""
    state = MailServer()
    controller = Controller(_Hooks(state), hostname="127.0.0.1", port=port or free_port())
    controller.start()
    state.port, state.loop = controller.port, controller.loop
    try:
        yield state
    finally:
        controller.stop()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
