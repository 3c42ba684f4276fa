"""A service that sends texts, in Twilio's form: checks who asks, refuses bad numbers, counts."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.servers.web import Answer, Asked, serving

ACCOUNT, TOKEN = "AC00112233445566778899aabbccddeeff", "a-token-of-tests"


@dataclass
class SmsService:
    """What was texted, and the knobs for what goes wrong."""

    url: str = ""
    texts: list[dict[str, str]] = field(default_factory=list)
    """The form of each that was taken, and its Idempotency-Key as `key`."""
    asked: list[Asked] = field(default_factory=list)
    opted_out: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    answer: Answer | None = None
    """Given instead of all else."""
    before: Callable[[], object] = lambda: None
    """Called before each answer."""

    def respond(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        self.before()
        if self.answer is not None:
            return self.answer
        if asked.path != f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json":
            return error(404, 20404, "The requested resource was not found")
        wanted = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if asked.headers.get("authorization") != f"Basic {wanted}":
            return error(401, 20003, "Authenticate")
        form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        if form["To"] in self.bad:
            return error(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        if form["To"] in self.opted_out:
            return error(400, 21610, "Attempt to send to unsubscribed recipient")
        self.texts.append(form | {"key": asked.headers["idempotency-key"]})
        told = {"sid": f"SM{len(self.texts):032x}", "status": "queued", "body": form["Body"]}
        return Answer(201, json.dumps(told).encode(), {"Content-Type": "application/json"})


def error(status: int, code: int, message: str, **headers: str) -> Answer:
    told = {"code": code, "message": message, "status": status}
    return Answer(
        status, json.dumps(told).encode(), {"Content-Type": "application/json", **headers}
    )


@contextmanager
def sms_service() -> Iterator[SmsService]:
    """Run the service until the block ends."""
    service = SmsService()
    with serving(service.respond) as server:
        service.url = f"{server.url}/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
        yield service
