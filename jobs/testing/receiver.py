"""A receiver of webhooks on this machine, which verifies their signatures."""

import hmac
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tailrace.db import clock
from tailrace.net.sample_server import Request, Response, SampleServer
from tailrace.net.signing import new_secret, signer

TOLERANCE_SECONDS = 300
"""How old a signature may be, by the test's clock."""


@dataclass(frozen=True)
class ReceivedWebhook:
    """A webhook with a valid signature."""

    id: str
    """The header `webhook-id`, which stays the same when the webhook is sent again."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WebhookReceiver:
    """Receives webhooks at `url`, signed with `secret`; use both for the endpoint under test.

    Webhooks with an invalid signature get the status 401; the reasons are in `refused`.
    """

    def __init__(self, secret: str = "") -> None:
        self.secret = secret or new_secret()
        self.received: list[ReceivedWebhook] = []
        self.refused: list[str] = []
        self._answers: deque[int] = deque()
        self._server = SampleServer(0, self._respond)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def answer(self, *statuses: int) -> None:
        """Answer the next webhooks with these statuses, and then with 204 again."""
        self._answers += statuses

    def assert_received(self, count: int = 1) -> list[ReceivedWebhook]:
        """Assert that `count` webhooks were received, and return them."""
        if len(self.received) != count:
            refused = "".join(f"\n  refused: {reason}" for reason in self.refused)
            raise AssertionError(f"received: {len(self.received)}, expected: {count}{refused}")
        return list(self.received)

    def _respond(self, request: Request) -> Response:
        if problem := self._problem(request):
            self.refused.append(problem)
            return Response(401, problem.encode())
        status = self._answers.popleft() if self._answers else 204
        headers = dict(request.headers)
        self.received.append(
            ReceivedWebhook(headers["webhook-id"], request.path, headers, request.body)
        )
        return Response(status)

    def _problem(self, request: Request) -> str:
        """Return the error in the signature; empty if it is valid."""
        missing = [
            name
            for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
            if not request.headers.get(name)
        ]
        if missing:
            return f"the header {missing[0]} is missing: the webhook is not signed"
        sent = request.headers["webhook-timestamp"]
        if not sent.isdecimal() or abs(int(sent) - clock.now().timestamp()) > TOLERANCE_SECONDS:
            return f"webhook-timestamp {sent} is more than {TOLERANCE_SECONDS} s away from now"
        expected = signer(self.secret).sign(
            request.headers["webhook-id"],
            datetime.fromtimestamp(int(sent), UTC),
            request.body.decode(errors="replace"),
        )
        given = request.headers["webhook-signature"].split()
        if not any(hmac.compare_digest(each, expected) for each in given):
            return "the signature was not made with the receiver's secret"
        return ""


@contextmanager
def webhook_receiver(secret: str = "") -> Iterator[WebhookReceiver]:
    """Receive webhooks until the end of the block."""
    receiver = WebhookReceiver(secret)
    server = receiver._server
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
