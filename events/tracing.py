"""The span of a publish, whose children are the spans of the jobs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tailrace.events.validation import EventRow
from tailrace.net import tracing

MAX_PARENTS = 100
"""Events of one call whose parents differ; those of further parents get no span."""


@contextmanager
def published(rows: Sequence[EventRow]) -> Iterator[list[EventRow]]:
    """Give the rows with a span of the call as their parent: one for all that have the same."""
    from opentelemetry.trace import SpanKind, Status, StatusCode

    parents = list(dict.fromkeys(row.trace_parent for row in rows))[:MAX_PARENTS]
    spans = {}
    for parent in parents:
        types = {row.type for row in rows if row.trace_parent == parent}
        only = types.pop() if len(types) == 1 else ""
        spans[parent] = tracing.tracer().start_span(
            f"publish {only}".strip(),
            context=tracing.parent(parent),
            kind=SpanKind.PRODUCER,
            attributes={
                "tailrace.event.type": only,
                "tailrace.events": sum(row.trace_parent == parent for row in rows),
            },
        )
    try:
        yield [
            replace(row, trace_parent=tracing.trace_parent(spans[row.trace_parent]))
            if row.trace_parent in spans
            else row
            for row in rows
        ]
    except BaseException as error:
        for span in spans.values():  # without its message, which may have what is private
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR))
        raise
    finally:
        for span in spans.values():
            span.end()
