"""Flows beside the same jobs without one: the rate at which they are enqueued and worked off.

The jobs are those of `throughput`: each inserts a row, by batches, and the rows are counted. The
sides take turns, each in a new database without statistics. The ratios are those of the medians.
"""

from collections.abc import Sequence
from statistics import median

import psycopg

from bench.jobs.throughput import await_effects, rate_of_effects
from bench.report import Row, Target, find
from bench.servers import Servers, dsn
from bench.sides.flows import SIZE

TITLE = "Flows: jobs that wait for one another"
WITHOUT = " without"
KINDS = {
    "one flow": 10_001,
    "callbacks": 10_000,
    "callbacks of another queue": 10_000,
    "chains": 10_000,
}
"""The number of jobs."""
TURNS = 5
PREPARED = "flows_prepared"
"""The database that each measurement copies."""
PATIENCE = 300
RUN, ENQUEUE = "worked off", "enqueued"
RATIO = "{} against the same jobs without flows, medians of the turns"


def run(servers: Servers, short: bool) -> list[Row]:
    env = servers.environment(servers.database(PREPARED), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    rows: list[Row] = []
    for kind, count in KINDS.items():
        jobs = count // 10 // SIZE * SIZE if short else count
        rows += _compare(servers, kind, jobs, 1 if short else TURNS)
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """What a flow may cost."""
    ratio = RATIO.format(RUN)
    return [
        Target("a flow with a callback, against the same jobs", find(rows, "one flow", ratio), 0.7),
        Target(f"flows of {SIZE} jobs, one a callback, against the same jobs",
               find(rows, "callbacks", ratio), 0.8),
    ]  # fmt: skip


def _compare(servers: Servers, kind: str, jobs: int, turns: int) -> list[Row]:
    sides = [kind, kind + WITHOUT]
    rates: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    notes: dict[str, str] = {}
    for _ in range(turns):
        for side in sides:
            enqueued, worked_off, notes[side] = _measure(servers, side, jobs)
            rates[side].append((enqueued, worked_off))
        sides.reverse()
    rows = []
    for place, work in enumerate((ENQUEUE, RUN)):
        values = {side: [rate[place] for rate in rates[side]] for side in sides}
        rows += [
            Row(
                "flows",
                side,
                work,
                median(values[side]),
                "jobs/s",
                notes[side] + _turns(values[side]),
            )
            for side in (kind, kind + WITHOUT)
        ]
        ratio = median(values[kind]) / (median(values[kind + WITHOUT]) or 1)
        fastest = max(values[kind]) / (max(values[kind + WITHOUT]) or 1)
        note = f"fastest turns: {fastest:.2f}"
        rows.append(Row("flows", kind, RATIO.format(work), ratio, "×", note))
    return rows


def _turns(rates: Sequence[float]) -> str:
    return f"; turns: {', '.join(f'{rate:,.0f}' for rate in rates)}"


def _measure(servers: Servers, side: str, jobs: int) -> tuple[float, float, str]:
    """Return the rates at which the jobs were enqueued and worked off, and a note."""
    database = servers.database("flows", copy_of=PREPARED)
    env = servers.environment(database, servers.broker(), BENCH_VARIANT="batch")
    seconds = float(servers.run(env, "-m", "bench.sides.flows", "enqueue", side, str(jobs)))
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        worker = servers.start("flows", env, "-m", "bench.sides.tailrace", "work")
        wrong = await_effects(connection, jobs, PATIENCE)
        servers.stop(worker)
        rate = rate_of_effects(connection)
    servers.drop(keep=1)
    return jobs / seconds, 0 if wrong else rate, wrong or f"{jobs:,} jobs"
