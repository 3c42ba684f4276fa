"""A service that sends texts, like Twilio: checks the account, refuses bad numbers, counts."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.servers.web import ReceivedRequest, Response, serving

ACCOUNT, TOKEN = "AC00112233445566778899aabbccddeeff", "a-token-of-tests"


@dataclass
class SmsService:
    """The texts, and the faults."""

    url: str = ""
    texts: list[dict[str, str]] = field(default_factory=list)
    """The form of each accepted text, and its Idempotency-Key as `key`."""
    requests: list[ReceivedRequest] = field(default_factory=list)
    opted_out: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    answer: Response | None = None
    """Sent to every request, if set."""
    before: Callable[[], object] = lambda: None
    """Called before each answer."""

    def respond(self, request: ReceivedRequest) -> Response:
        self.requests.append(request)
        self.before()
        if self.answer is not None:
            return self.answer
        if request.path != f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json":
            return error(404, 20404, "The requested resource was not found")
        credentials = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {credentials}":
            return error(401, 20003, "Authenticate")
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        if form["To"] in self.bad:
            return error(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        if form["To"] in self.opted_out:
            return error(400, 21610, "Attempt to send to unsubscribed recipient")
        self.texts.append(form | {"key": request.headers["idempotency-key"]})
        reply = {"sid": f"SM{len(self.texts):032x}", "status": "queued", "body": form["Body"]}
        return Response(201, json.dumps(reply).encode(), {"Content-Type": "application/json"})


def error(status: int, code: int, message: str, **headers: str) -> Response:
    body = {"code": code, "message": message, "status": status}
    return Response(
        status, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    )


@contextmanager
def sms_service() -> Iterator[SmsService]:
    """Run the service until the block ends."""
    service = SmsService()
    with serving(service.respond) as server:
        service.url = f"{server.url}/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
        yield service
