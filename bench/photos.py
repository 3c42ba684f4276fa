"""Photos: clustering with 100,000 photos in the active window, a sweep among 1,000,000.

One process drains `photos.cluster` as a worker does, claims and settlements included. The sweep
is what the three invariants of the domain ask, with 200 photos that wait.
"""

import json
from collections.abc import Sequence

from bench.house import House
from bench.report import Bar, Row, find

TITLE = "Photos"
CLUSTER = "photos.cluster, one process"
SWEEP = "find of all three invariants"


def run(house: House, short: bool) -> list[Row]:
    """Cluster, then grow the history and sweep, in one database."""
    window, fresh, history = (10_000, 2000, 100_000) if short else (100_000, 10_000, 1_000_000)
    env = house.environment(house.database("photos"), house.broker())
    house.run(env, "-m", "bench.sides.tailrace", "prepare")
    words = map(str, (window, fresh, history))
    told = json.loads(house.run(env, "-m", "bench.sides.photos", *words))
    house.drop()
    note = f"{told['gatherings']:,} gatherings ACTIVE, {told['clustered']:.0%} of the fresh joined"
    return [
        Row("photos", CLUSTER, f"{window:,} in the window", told["rate"], "photos/s", note),
        Row("photos", SWEEP, f"{history:,} photos", told["sweep"], "ms", "200 of them wait"),
        *(
            Row("photos", name, f"{history:,} photos", spent, "ms")
            for name, spent in told["each"].items()
        ),
    ]


def bars(rows: Sequence[Row]) -> list[Bar]:
    """What issue 5 asks for, on 2 cores."""
    rate, sweep = rows[0], rows[1]
    return [
        Bar(f"clustering, {rate.work}, photos/s", find(rows, CLUSTER, rate.work), 500),
        Bar(f"a sweep of {sweep.work}, ms", find(rows, SWEEP, sweep.work), 50, "less"),
    ]
