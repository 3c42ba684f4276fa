"""Error reports contain only what the lists allow."""

import gzip
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import brotli
import pytest

from tests import forks

ROOT = Path(__file__).parents[2]

REPORT = """
import django, sentry_sdk, structlog
django.setup()
from pydantic import BaseModel
from django.conf import settings
from tailrace.jobs.runtime.report import Failure, reporters
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

class Payload(BaseModel):
    number: int

def broken(payload):
    local_secret = payload["token"]
    Payload.model_validate({"number": local_secret})

structlog.contextvars.bind_contextvars(event_id=7, job_id=8, queue="builds.x", token="s3cret-bound")
sentry_sdk.set_extra("payload", "s3cret-extra")
sentry_sdk.set_context("job", {"payload": "s3cret-context"})
sentry_sdk.set_user({"email": "s3cret-user"})
sentry_sdk.add_breadcrumb(message="s3cret-breadcrumb")
try:
    broken({"token": "s3cret-value"})
except Exception as error:
    failure = Failure(
        handler="builds.x", job_id=8, event_id=7, event_type="builds.commit", routing_key="k",
        attempt=2, max_attempts=4, claim_no=2, final=True, retry_in=0, error=str(error),
        error_class=type(error).__name__, exception=error,
    )
    for reporter in reporters():
        reporter(failure)

from django.urls import path
from django.views.decorators.csrf import csrf_exempt
import tailrace.config.urls
def view(request):
    raise RuntimeError("view broke\\nDETAIL: s3cret-detail")
tailrace.config.urls.urlpatterns.append(path("broken/", csrf_exempt(view)))
environ = RequestFactory(headers={"authorization": "Bearer s3cret-header"}).post(
    "/broken/?token=s3cret-query", {"field": "s3cret-body"},
    HTTP_HOST="127.0.0.1", HTTP_COOKIE="sessionid=s3cret-cookie",
).environ
list(WSGIHandler()(environ, lambda *args: None))
sentry_sdk.flush(10)
"""


class Sink:
    """An HTTP server that takes Sentry's envelopes."""

    def __init__(self) -> None:
        self.raw: list[str] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                unpack = {"gzip": gzip.decompress, "br": brotli.decompress}
                body = unpack.get(self.headers.get("Content-Encoding"), bytes)(body)
                sink.raw.append(body.decode())
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args: object) -> None:
                """Be silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def dsn(self) -> str:
        """The address that reports go to."""
        return f"http://key@127.0.0.1:{self.server.server_address[1]}/1"

    def events(self) -> list[dict]:
        """The events out of all envelopes."""
        events = []
        for envelope in self.raw:
            lines = [json.loads(line) for line in envelope.splitlines() if line.strip()]
            events += [
                lines[at + 1] for at, line in enumerate(lines) if line.get("type") == "event"
            ]
        return events


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A sink that is closed afterwards."""
    sink = Sink()
    yield sink
    sink.server.shutdown()
    sink.server.server_close()


def report(**variables: str) -> None:
    """Fail in every way, in a separate process."""
    done = forks.run(
        ["-c", REPORT],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_reports_contain_no_content(
    sink: Sink,
) -> None:
    report(SENTRY_DSN=sink.dsn)
    attempt, view = sink.events()
    assert "s3cret" not in "".join(sink.raw)
    assert attempt["tags"]["handler"] == attempt["tags"]["queue"] == "builds.x"
    assert (attempt["tags"]["job_id"], attempt["tags"]["event_id"]) == ("8", "7")
    assert attempt["fingerprint"] == ["builds.x", "ValidationError"]
    assert attempt["exception"]["values"][-1]["value"] == ""
    assert attempt["exception"]["values"][-1]["type"] == "ValidationError"
    assert attempt["exception"]["values"][-1]["stacktrace"]["frames"]
    assert set(view["request"]) == {"method", "url"}
    assert view["request"]["url"].endswith("/broken/")
    assert view["exception"]["values"][-1]["value"] == ""
    for event in (attempt, view):
        assert "user" not in event
        assert "breadcrumbs" not in event
        assert set(event["contexts"]) == {"trace"}


def test_without_a_dsn_nothing_is_sent(sink: Sink) -> None:
    report(SENTRY_DSN="")
    assert sink.raw == []
