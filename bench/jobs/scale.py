"""The cost of claim, settle, tick and sweep as tables of finished and pending jobs grow.

Medians within one process, each round rolled back. Lanes: 1,000.
"""

import json
from collections.abc import Sequence

from bench.report import Row, Target, find
from bench.servers import Servers

TITLE = "Scale"
STEPS = ((10_000, 10_000), (1_000_000, 10_000), (1_000_000, 100_000), (1_000_000, 1_000_000))
MOST_FINISHED = (10_000_000, 10_000)


def run(servers: Servers, short: bool) -> list[Row]:
    """Grow one database step by step; 10 million finished jobs last, in another one."""
    rows = _steps(servers, STEPS[:3] if short else STEPS)
    return rows if short else rows + _steps(servers, (MOST_FINISHED,))


def _steps(servers: Servers, steps: Sequence[tuple[int, int]]) -> list[Row]:
    env = servers.environment(servers.database("scale"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    rows = []
    for finished, pending in steps:
        words = map(str, (finished, pending, 25))
        medians = json.loads(
            servers.run(env, "-m", "bench.jobs.inside.in_process", "scale", *words)
        )
        rows += [
            Row("scale", what, work(finished, pending), median, "ms")
            for what, median in medians.items()
        ]
    servers.drop()
    return rows


def work(finished: int, pending: int) -> str:
    """The name of a step."""
    return f"{finished:,} finished, {pending:,} pending"


def targets(rows: Sequence[Row]) -> list[Target]:
    """The history costs nothing; fairness costs little."""

    def both(step: tuple[int, int]) -> float:
        return sum(find(rows, side, work(*step)) for side in ("claim of 100, plain", "settle 100"))

    measured = {row.work for row in rows}
    most = MOST_FINISHED if work(*MOST_FINISHED) in measured else STEPS[1]
    backlog = STEPS[3] if work(*STEPS[3]) in measured else STEPS[2]
    targets = [Target(f"claim and settle at {most[0]:,} finished against 10,000",
                both(most) / both(STEPS[0]), 1.3, "less")]  # fmt: skip
    for size in (10, 100):
        fair, plain = (find(rows, f"claim of {size}, {kind}", work(*backlog))
                       for kind in ("fair", "plain"))  # fmt: skip
        targets.append(Target(f"fair claim of {size} against plain at {backlog[1]:,} pending",
                        fair / plain, 2, "less"))  # fmt: skip
    return targets
