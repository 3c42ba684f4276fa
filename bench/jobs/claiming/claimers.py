"""Many claimers of one queue, and claims where many lanes wait for what is due later.

The claimers are processes that claim and settle batches of 100 and call nothing. The kinds take
turns, so that the noise of the machine meets all of them; the figures are medians. A turn ends when
less than a batch for each claimer is left, or after SECONDS.
"""

import json
import statistics
from collections.abc import Sequence

from bench.report import Row, Target, find
from bench.servers import Servers

TITLE = "Claimers: many processes at one queue; many lanes that wait"
CLAIMERS = (
    ("plain", 1),
    ("plain", 4),
    ("plain", 32),
    ("ordered", 16),
    ("limited", 16),
    ("rate", 16),
)
TURNS, SECONDS, JOBS = 5, 20, 120_000
LANES, ROUNDS = 50_000, 40
_SIDE = "bench.jobs.inside.claimers"


def run(servers: Servers, short: bool) -> list[Row]:
    """Both, in one database."""
    env = servers.environment(servers.database("claimers"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    rows = _lanes(servers, env, LANES // 10 if short else LANES)
    rows += _claimers(servers, env, *((1, 2) if short else (TURNS, SECONDS)))
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """Nothing collapses, and lanes that wait cost nothing."""
    many, four = (find(rows, "plain", work(count)) for count in (32, 4))
    targets = [Target("32 claimers of a plain queue against 4", many / four, 1)]
    targets += [Target(f"{kind}, 16 claimers, jobs/s", find(rows, kind, work(16)), 3000)
                for kind in ("ordered", "limited", "rate")]  # fmt: skip
    targets += [Target(f"{row.side}: {row.work}, median ms", row.value, 5, "less")
                for row in rows if row.unit == "ms"]  # fmt: skip
    return targets


def work(count: int) -> str:
    """The name of a figure."""
    return f"claimed and settled by {count}"


def _lanes(servers: Servers, env: dict[str, str], lanes: int) -> list[Row]:
    rows = []
    for kind in ("fair", "ordered"):
        words = ("lanes", kind, str(lanes), str(ROUNDS))
        times = json.loads(servers.run(env, "-m", _SIDE, *words))
        note = f"shortest {min(times):.2f}, longest {max(times):.2f} ms"
        what = f"claim, {lanes:,} lanes waiting, none due"
        rows.append(Row("claimers", kind, what, statistics.median(times), "ms", note))
    return rows


def _claimers(servers: Servers, env: dict[str, str], turns: int, seconds: int) -> list[Row]:
    rates: dict[tuple[str, int], list[float]] = {side: [] for side in CLAIMERS}
    empty = dict.fromkeys(CLAIMERS, 0)
    for _ in range(turns):
        for side in CLAIMERS:
            words = ("claimers", side[0], str(side[1]), str(seconds), str(JOBS))
            done = json.loads(servers.run(env, "-m", _SIDE, *words))
            rates[side].append(done["rate"])
            empty[side] += done["empty"]
    return [
        Row("claimers", kind, work(count), statistics.median(rates[kind, count]), "/s",
            f"of {', '.join(f'{rate:,.0f}' for rate in rates[kind, count])};"
            f" {empty[kind, count]} claims took nothing")
        for kind, count in CLAIMERS
    ]  # fmt: skip
