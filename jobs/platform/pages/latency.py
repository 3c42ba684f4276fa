"""The page of the times that jobs waited and ran, by queue."""

from functools import partial
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tailrace.db import clock
from tailrace.db.connections import atomic
from tailrace.db.limits import reason, statement_limit
from tailrace.jobs.platform.inspection.queues.latency import SPANS, Latency, latencies
from tailrace.jobs.platform.inspection.recent import Recent
from tailrace.jobs.platform.pages.access import for_staff

STATEMENT_SECONDS = 3
CACHE_SECONDS = 5.0
WIDTH = 100.0
"""The length of the longest bar."""


@require_GET
@for_staff
def latency(request: HttpRequest, template: str) -> HttpResponse:
    """Show the times of all queues, as a page or as the part of it that changes."""
    name = request.GET.get("window", "")
    span = SPANS.get(name, SPANS["1h"])
    context = {"span": span, "spans": list(SPANS.values())}
    return render(request, template, context | _recent[span.name].get(CACHE_SECONDS))


def _read(name: str) -> dict[str, Any]:
    try:
        with atomic(), statement_limit(STATEMENT_SECONDS):
            rows = latencies(SPANS[name])
    except DatabaseError as error:
        return {"problem": reason(error), "at": clock.now()}
    longest = max((_end(row) for row in rows), default=0.0) or 1.0
    return {"rows": [_bars(row, longest) for row in rows], "at": clock.now()}


def _end(row: Latency) -> float:
    return (row.wait[1] or 0.0) + (row.run[1] or 0.0)


def _bars(row: Latency, longest: float) -> dict[str, Any]:
    """Return a row with the lengths of its bars: the 95th percentiles of wait and run."""
    waited, ran = (WIDTH * (part or 0.0) / longest for part in (row.wait[1], row.run[1]))
    return {"latency": row, "waited": waited, "ran": ran}


_recent = {name: Recent(partial(_read, name)) for name in SPANS}


def forget() -> None:
    for each in _recent.values():
        each.forget()
