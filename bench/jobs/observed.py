"""What /metrics and spans cost a drain: claim, call, settle and record, in turns in one process.

The spans are sent to a port where nobody answers: making and queueing them is what is measured.
"""

import json
from collections.abc import Sequence

from bench.report import Row, Target, find, percentile
from bench.servers import Servers

TITLE = "Metrics and spans"
JOBS = 10
"""Per claim."""


def run(servers: Servers, short: bool) -> list[Row]:
    """One claim at a time, by all sides in turn."""
    env = servers.environment(
        servers.database("observed"),
        servers.broker(),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
    )
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    rounds = "60" if short else "600"
    sides = json.loads(
        servers.run(env, "-m", "bench.jobs.inside.in_process", "observed", rounds, str(JOBS))
    )
    servers.drop()
    measure = f"claim of {JOBS}, median"
    return [
        Row("observed", side, measure, percentile(times, 0.5), "ms")
        for side, times in sides.items()
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """Counting costs little; spans, of which each job has four, cost those who want them."""
    measure = f"claim of {JOBS}, median"
    bare, counted, traced = (
        find(rows, side, measure) for side in ("neither", "counted", "counted and traced")
    )
    return [
        Target("counted against neither", counted / bare, 1.15, "less"),
        Target("counted and traced against neither", traced / bare, 2, "less"),
    ]
