"""A receiver of OpenTelemetry's spans over HTTP, which decodes what it gets."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers.web import ReceivedRequest, Response, serving


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it arrived; its ids in hexadecimal, empty for no parent."""

    name: str
    service: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    failed: bool


@dataclass
class SpanReceiver:
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[ReceivedSpan] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    """While it is not set, requests get no answer."""

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def children(self, span: ReceivedSpan) -> list[ReceivedSpan]:
        return sorted(
            (each for each in self.spans if each.parent == span.id), key=lambda s: s.start
        )

    def environment(self, **variables: str) -> dict[str, str]:
        """The standard variables by which a process sends its spans here."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_SERVICE_NAME": "tailrace-test",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            **variables,
        }

    def respond(self, request: ReceivedRequest) -> Response:
        assert request.path == "/v1/traces"
        if not self.answers.wait(60):
            return Response(503)
        packed = request.headers.get("content-encoding") == "gzip"
        body = gzip.decompress(request.body) if packed else request.body
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_span(span, named["service.name"]) for span in scope.spans]
        return Response(200, b"", {"Content-Type": "application/x-protobuf"})


def _span(span: Any, service: str) -> ReceivedSpan:
    attributes = {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes
    }
    return ReceivedSpan(
        name=span.name,
        service=service,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=attributes,
        failed=span.status.code == 2,
    )


@contextmanager
def span_receiver() -> Iterator[SpanReceiver]:
    """Run it until the block ends."""
    receiver = SpanReceiver()
    receiver.answers.set()
    with serving(receiver.respond) as server:
        receiver.url = server.url
        yield receiver
        receiver.answers.set()
