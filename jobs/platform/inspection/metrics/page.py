"""Build the Prometheus metrics from the figures, with a bounded number of label values."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import structlog
from django.db import DatabaseError
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from tailrace.db.limits import reason
from tailrace.events.types import all_types
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.metrics.reading import read
from tailrace.jobs.platform.inspection.recent import Recent

log = structlog.get_logger(__name__)

CACHE_SECONDS = 5.0
"""Metrics are cached for this time: many scrapes cost no more than one."""
MAX_NAMES = 200
"""Queues, event types and groups with series of their own; all others are summed as OTHER."""
OTHER = "other"

_QUEUE_GAUGES = {
    "pending": "Jobs that have not started; counted up to 50,000",
    "due": "Pending jobs that are due; counted up to 50,000",
    "running": "Running jobs",
    "failed": "Failed jobs (dead letters); counted up to 50,000",
}
_BOUNDS = [*map(floatToGoString, totals.BUCKETS), "+Inf"]


def current() -> list[Metric]:
    """Return all metrics, at most CACHE_SECONDS old. Without the database, these are only
    `tailrace_database_up` and the verdict."""
    return _recent.get(CACHE_SECONDS, waits=True)


_recent = Recent(lambda: [*_figures(), *_verdict(verdict.current())])
forget = _recent.forget


def _verdict(now: verdict.Health) -> Iterable[Metric]:
    yield _gauge("healthy", "Whether the verdict on the whole system is healthy", now.healthy)
    words = "Causes that keep jobs from being done, by code"
    counts = dict.fromkeys((check.code for check in verdict.checks()), 0)
    counts |= Counter(cause.code for cause in now.causes)
    yield _gauges("causes", words, "code", counts)


def _figures() -> list[Metric]:
    began = time.monotonic()
    try:
        figures = read()
    except DatabaseError as error:
        log.warning("metrics.not_read", error=reason(error))
        return [_gauge("database_up", "Whether the database answers", 0)]
    seconds = time.monotonic() - began
    return [
        _gauge("database_up", "Whether the database answers", 1),
        _gauge("read_seconds", "How long it took to read the metrics", seconds),
        *_queues(figures["queues"]),
        *_totals(figures["totals"]),
        *_upkeep(figures),
        *_connections(figures["connections"]),
        *_sweeps(figures["sweeps"]),
    ]


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tailrace_{name}", words, value=value)


def _gauges(name: str, words: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"tailrace_{name}", words, labels=[label])
    for value, number in sorted(values.items()):
        family.add_metric([value], number)
    return family


def _queue_names() -> set[str]:
    return set(sorted(registry.all_handlers())[:MAX_NAMES])


def _label(name: str, known: Iterable[str]) -> str:
    return name if name in known else OTHER


def _queues(rows: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    known = _queue_names()
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        queue = sums[_label(row["name"], known)]
        for column in (*_QUEUE_GAUGES, "paused"):
            queue[column] += row[column]
        queue["oldest"] = max(queue["oldest"], row["oldest"] or 0.0)
    gauges = {column: (f"queue_{column}_jobs", words) for column, words in _QUEUE_GAUGES.items()}
    gauges["oldest"] = "queue_oldest_due_seconds", "How long the oldest due job has been due"
    gauges["paused"] = "queue_paused", "Whether the queue is paused"
    for column, (name, words) in gauges.items():
        yield _gauges(name, words, "queue", {queue: row[column] for queue, row in sums.items()})


def _totals(rows: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    queues, types = _queue_names(), {each.name for each in all_types()[:MAX_NAMES]}
    sums: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for row in rows:
        name = _label(row["name"], types if row["metric"] == totals.EVENTS else queues)
        both = zip_longest(sums[row["metric"]].get(name, []), row["numbers"], fillvalue=0.0)
        sums[row["metric"]][name] = [a + b for a, b in both]
    yield _attempts(sums[totals.SETTLED])
    yield _counter("wake_ups", "Wake-ups that were sent", "queue", sums[totals.WAKE_UPS])
    yield _counter("events", "Events that were recorded", "type", sums[totals.EVENTS])
    yield _histogram("wait", "How long jobs waited from due to claimed", sums[totals.WAIT])
    yield _histogram("run", "How long calls of the handler took", sums[totals.RUN])


def _attempts(sums: Mapping[str, list[float]]) -> Metric:
    words = "Claims by outcome"
    family = CounterMetricFamily("tailrace_attempts", words, labels=["queue", "outcome"])
    for name, numbers in sorted(sums.items()):
        for outcome, count in zip(totals.OUTCOMES, numbers, strict=False):
            family.add_metric([name, outcome], count)
    return family


def _counter(name: str, words: str, label: str, sums: Mapping[str, list[float]]) -> Metric:
    family = CounterMetricFamily(f"tailrace_{name}", words, labels=[label])
    for value, numbers in sorted(sums.items()):
        family.add_metric([value], numbers[0])
    return family


def _histogram(name: str, words: str, sums: Mapping[str, list[float]]) -> Metric:
    family = HistogramMetricFamily(f"tailrace_{name}_seconds", words, labels=["queue"])
    for queue, numbers in sorted(sums.items()):
        total, buckets = 0.0, []
        for bound, count in zip(_BOUNDS, numbers, strict=False):
            total += count
            buckets.append((bound, total))
        family.add_metric([queue], buckets, sum_value=numbers[-1])
    return family


def _connections(used: Mapping[str, int]) -> Iterable[Metric]:
    words = "Connections to the database under its tightest limit, by owner"
    yield _gauges(
        "connections", words, "owner", {"own": used["ours"], "others": used["used"] - used["ours"]}
    )
    yield _gauge("connections_possible", "Connections that this limit allows", used["possible"])


def _upkeep(figures: Mapping[str, Any]) -> Iterable[Metric]:
    yield _gauge("workers", "Workers with a recent heartbeat", figures["workers"])
    words = "Time since the last tick, sweep or prune"
    ages = {turn: max(age, 0.0) for turn, age in dict(figures["turns"]).items()}
    yield _gauges("upkeep_age_seconds", words, "turn", ages)
    words = "How long the most overdue finished job has been past its retention; 0 if none is"
    yield _gauge("past_retention_seconds", words, figures["past_retention"])
    words = "Circuit breakers by group; breakers of destinations that never failed are not counted"
    breakers = GaugeMetricFamily("tailrace_breakers", words, labels=["group", "state"])
    apps = {name.partition(".")[0] for name in registry.all_handlers()}
    counts: Counter[tuple[str, str]] = Counter()
    for row in figures["breakers"]:
        group = row["group"] if row["group"].partition(".")[0] in apps else OTHER
        counts[group, row["state"]] += row["count"]
    known = {group for group, _state in sorted(counts)[: 4 * MAX_NAMES]}
    for (group, state), count in sorted(counts.items()):
        if group in known:
            breakers.add_metric([group, state], count)
    yield breakers


_SWEEP_GAUGES = {
    "age_seconds": ("Time since its last check began", lambda row: max(row["age"], 0.0)),
    "duration_seconds": ("How long its last check took", lambda row: row["duration_ms"] / 1000),
    "found": ("Violations that its last check found", lambda row: row["found"]),
    "unrepaired": (
        "Violations that its last check found and did not repair",
        lambda row: row["found"] - row["repaired"],
    ),
    "error": ("Whether its last check raised an error", lambda row: row["outcome"] == "error"),
}


def _sweeps(rows: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    rows = list(rows)[:MAX_NAMES]
    for name, (words, value) in _SWEEP_GAUGES.items():
        values = {row["name"]: float(value(row)) for row in rows}
        yield _gauges(f"sweep_{name}", words, "invariant", values)
