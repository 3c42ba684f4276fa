"""OpenTelemetry spans, sent to the endpoint in OpenTelemetry's standard environment variables.
Without an endpoint, no package is imported. Callers never wait for the exporter; spans that do not
fit into its queue are dropped."""

import atexit
import os
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer


ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
END_SECONDS = 2.0
"""How long a process waits at its end for the export of its last spans."""
EXPORT_SECONDS = "5"
"""Default of OTEL_EXPORTER_OTLP_TIMEOUT, the time limit of one export."""
NAME = "tailrace"
PROTOCOL = "http/protobuf"


def is_wanted(variables: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's standard variables switch the export of spans on."""
    disabled = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = variables.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    return any(map(variables.get, ENDPOINTS)) and not disabled and exporters in ("", "otlp")


def is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


on = is_wanted(os.environ) and is_installed()
"""Whether this process creates spans."""

_lock = threading.Lock()
_provider: Any = None


def tracer() -> "Tracer":
    """Return the tracer of this process. The first call starts the exporter."""
    global _provider
    if _provider is None:
        with _lock:
            if _provider is None:
                _provider = _new_provider()
    made: Tracer = _provider.get_tracer(NAME)
    return made


def _new_provider() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_SECONDS)
    os.environ.setdefault("OTEL_SERVICE_NAME", NAME)
    resource = Resource.create({SERVICE_NAME: os.environ["OTEL_SERVICE_NAME"]})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def parent(trace_parent: str) -> "Context | None":
    """Return the context of a W3C `traceparent`; None (the caller's context) if it is invalid."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not trace_parent:
        return None
    from opentelemetry.context import Context

    return TraceContextTextMapPropagator().extract({"traceparent": trace_parent}, Context()) or None


def trace_parent(span: "Span") -> str:
    """Return the W3C `traceparent` of a span, for its child spans."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def shut_down(seconds: float = END_SECONDS) -> None:
    """Export the remaining spans, for at most `seconds`. Later spans are not exported."""
    provider = _provider
    if provider is not None:
        thread = threading.Thread(target=provider.shutdown, name="tracing-end", daemon=True)
        thread.start()
        thread.join(seconds)


def _in_child() -> None:
    """Reset the provider in a forked child: its thread does not exist there, and the child must not
    write to the parent's connections."""
    global _provider, _lock
    _provider, _lock = None, threading.Lock()


if on:
    os.register_at_fork(after_in_child=_in_child)
    atexit.register(shut_down)
