"""The span of a call of `publish`. The spans of the jobs are its children."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tailrace.events.publishing.validation import EventRow
from tailrace.net import tracing

MAX_PARENTS = 100
"""The maximum number of spans for one call. Events with further parents get no span."""


@contextmanager
def published(rows: Sequence[EventRow]) -> Iterator[list[EventRow]]:
    """Yield the rows with a span of this call as their parent. Rows with the same parent share one
    span, whose parent is the former parent of the rows."""
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
        for span in spans.values():  # without the error's message, which may contain private data
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR))
        raise
    finally:
        for span in spans.values():
            span.end()
