"""The spans of a job: one for each claim, from claim to settlement, with child spans for claim, run
and settle.

They contain ids, names and outcomes, but no payloads, results, messages, routing keys or lanes.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery.signals import worker_process_shutdown, worker_shutdown

from tailrace.events import context
from tailrace.jobs.handler import ClaimedJob
from tailrace.net import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span


def now() -> int:
    """Return the time in nanoseconds, as spans need it; 0 if tracing is off."""
    return time.time_ns() if tracing.on else 0


@dataclass(slots=True)
class JobSpan:
    """The span of a claim of one job."""

    span: "Span"

    def child(self, name: str, start: int | None = None) -> "Span":
        from opentelemetry.trace import set_span_in_context

        parent = set_span_in_context(self.span)
        return tracing.tracer().start_span(name, context=parent, start_time=start)


def claimed(jobs: Sequence[ClaimedJob], began: int) -> None:
    """Begin the spans of claimed jobs. `began`: when the claim began, by `now`."""
    if not tracing.on:
        return
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind

    ended = time.time_ns()
    for job in jobs:
        event = job.event
        parent = tracing.parent(event.trace_parent) if event else None
        attributes: dict[str, str | int | float] = {
            "tailrace.queue": job.handler.name,
            "tailrace.job.id": job.id,
            "tailrace.attempt": job.attempt,
            "tailrace.claim_no": job.claim_no,
            "tailrace.waited_seconds": job.waited,
        }
        if event:
            attributes |= {"tailrace.event.id": event.id, "tailrace.event.type": event.type}
        job.span = JobSpan(
            tracing.tracer().start_span(
                f"job {job.handler.name}",
                context=parent or Context(),
                kind=SpanKind.CONSUMER,
                attributes=attributes,
                start_time=began,
            )
        )
        job.span.child("claim", began).end(ended)


@contextmanager
def running(jobs: Sequence[ClaimedJob]) -> Iterator[None]:
    """Record the block as the `run` span of each job. If there is one job, the span is also the
    parent of the events that the handler publishes and of the spans that it creates."""
    spans = [job.span.child("run") for job in jobs if job.span is not None]
    with ExitStack() as stack:
        for span in spans:
            stack.callback(span.end)
        if len(spans) == 1:
            stack.enter_context(_current(spans[0]))
        yield


@contextmanager
def _current(span: "Span") -> Iterator[None]:
    from opentelemetry.trace import use_span

    token = context.trace_parent.set(tracing.trace_parent(span))
    try:
        with use_span(span, record_exception=False, set_status_on_exception=False):
            yield
    finally:
        context.trace_parent.reset(token)


def settled(job: ClaimedJob, began: int, state: str, outcome: str, error_class: str) -> None:
    """End the spans of a job with its state and outcome. `began`: when the settlement began, by
    `now`."""
    from opentelemetry.trace import Status, StatusCode

    job_span, job.span = job.span, None
    if job_span is None:
        return
    job_span.child("settle", began).end()
    span = job_span.span
    span.set_attribute("tailrace.state", state)
    if outcome:
        span.set_attribute("tailrace.outcome", outcome)
    if error_class:
        span.set_attribute("error.type", error_class)
    if state == "failed" or outcome in ("failed", "retried"):
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _at_end(**kwargs: object) -> None:
    tracing.shut_down()


if tracing.on:
    worker_process_shutdown.connect(_at_end)
    worker_shutdown.connect(_at_end)
