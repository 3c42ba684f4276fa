"""The cost of a tick with 1,000,000 schedules beside that with 1,000, and of creating them; then
that of subscribing 100,000 accounts to a plan.

Two databases, in turns, so that the noise of the machine meets both. A tick that makes the jobs of
many schedules ends after about a second; then the next one continues, and both are counted.
"""

import json
import statistics
from collections.abc import Sequence

from bench.report import Row, Target, find
from bench.servers import Servers

TITLE = "Schedules"
FEW, MANY = 1_000, 1_000_000
DUE = (0, 1_000, 10_000)
CREATED = "create 100,000 in one call"
ENROLLED = "subscribe accounts to a plan in one call"
ACCOUNTS = 100_000
TURNS = 3


def run(servers: Servers, short: bool) -> list[Row]:
    """Fill both, then tick."""
    many = MANY // 10 if short else MANY
    sides = {}
    rows = []
    for total in (FEW, many):
        env = servers.environment(servers.database(f"schedules_{total}"), servers.broker())
        servers.run(env, "-m", "bench.sides.tailrace", "prepare")
        seconds = json.loads(
            servers.run(env, "-m", "bench.jobs.inside.schedules", "fill", str(total))
        )
        sides[total] = env
        if total == many:
            note = f"longest of {len(seconds)}: {max(seconds):.1f} s"
            rows.append(Row("schedules", CREATED, work(total, 0), statistics.median(seconds), "s",
                            note))  # fmt: skip
    times: dict[tuple[int, int], list[float]] = {}
    longest: dict[tuple[int, int], float] = {}
    for _turn in range(1 if short else TURNS):
        for due in DUE:
            for total, env in sides.items():
                if due > total:
                    continue
                words = ("tick", str(due), "3" if due > 1000 else "7")
                done = json.loads(servers.run(env, "-m", "bench.jobs.inside.schedules", *words))
                key = (total, due)
                times[key] = times.get(key, []) + done["times"]
                longest[key] = max(longest.get(key, 0), done["longest"])
    for (total, due), values in times.items():
        note = f"longest tick {longest[total, due]:.0f} ms"
        rows.append(Row("schedules", "tick", work(total, due), statistics.median(values), "ms",
                        note, {"longest": longest[total, due]}))  # fmt: skip
    rows.append(_enrolled(servers, ACCOUNTS // 10 if short else ACCOUNTS))
    servers.drop()
    return rows


def _enrolled(servers: Servers, accounts: int) -> Row:
    env = servers.environment(servers.database("schedules_plan"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    done = servers.run(env, "-m", "bench.jobs.inside.schedules", "enrol", str(accounts))
    seconds, again = json.loads(done)
    note = f"basic, with {2 * accounts:,} schedules; the same again: {again:.1f} s"
    return Row("schedules", ENROLLED, f"{accounts:,} accounts", seconds, "s", note)


def work(total: int, due: int) -> str:
    """The name of a step."""
    return f"{total:,} schedules, {due:,} due"


def targets(rows: Sequence[Row]) -> list[Target]:
    """A tick costs what is due."""
    ticks = [row for row in rows if row.side == "tick"]
    many = max(int(row.work.split()[0].replace(",", "")) for row in ticks)

    def ratio(due: int) -> float:
        return find(rows, "tick", work(many, due)) / find(rows, "tick", work(FEW, due))

    longest = max(row.details["longest"] for row in ticks)
    return [
        Target(f"tick with {many:,} schedules of which none is due, against {FEW:,}",
               ratio(0), 1.5, "less"),
        Target(f"tick with {many:,} schedules of which 1,000 are due, against {FEW:,}",
               ratio(1000), 2, "less"),
        Target("ms of the longest tick, 10,000 due", longest, 2000, "less"),
        Target(CREATED + ", s", next(r.value for r in rows if r.side == CREATED), 20, "less"),
        Target(ENROLLED + ", s", next(r.value for r in rows if r.side == ENROLLED), 90, "less"),
    ]  # fmt: skip
