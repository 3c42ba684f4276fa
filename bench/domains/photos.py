"""Measure clustering with 100,000 photos in the time window, and a sweep of 1,000,000.

One process drains `photos.cluster` as a worker does, with claiming and settling. The sweep runs the
queries of the three invariants of photos, with 200 photos due.
"""

import json
from collections.abc import Sequence

from bench.report import Row, Target, find
from bench.servers import Servers

TITLE = "Photos"
CLUSTER = "photos.cluster, one process"
SWEEP = "find of all three invariants"


def run(servers: Servers, short: bool) -> list[Row]:
    """Cluster, then grow the history and sweep, in one database."""
    window, fresh, history = (10_000, 2000, 100_000) if short else (100_000, 10_000, 1_000_000)
    env = servers.environment(servers.database("photos"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    sizes = map(str, (window, fresh, history))
    results = json.loads(servers.run(env, "-m", "bench.domains.inside.photos", *sizes))
    servers.drop()
    note = f"{results['gatherings']:,} gatherings ACTIVE, {results['clustered']:.0%} of new joined"
    return [
        Row("photos", CLUSTER, f"{window:,} in the window", results["rate"], "photos/s", note),
        Row("photos", SWEEP, f"{history:,} photos", results["sweep"], "ms", "200 of them are due"),
        *(
            Row("photos", name, f"{history:,} photos", milliseconds, "ms")
            for name, milliseconds in results["each"].items()
        ),
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """The requirements, on 2 cores."""
    rate, sweep = rows[0], rows[1]
    return [
        Target(f"clustering, {rate.work}, photos/s", find(rows, CLUSTER, rate.work), 500),
        Target(f"a sweep of {sweep.work}, ms", find(rows, SWEEP, sweep.work), 50, "less"),
    ]
