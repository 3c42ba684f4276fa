"""What jobs cost the database: WAL, history, retention, lanes that wait, the renewal of a lease.

The tables are as the platform makes them, and nothing is analysed or vacuumed for the figures.
BENCH_FINISHED: finished jobs of the history (1,000,000; the issue's bar is for 20,000,000).
BENCH_RETIRED: jobs that leave retention together (1,000,000; the bar is for 5,000,000).
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from bench.report import Row, Target, find
from bench.servers import ROOT, Servers

TITLE = "Storage: what a job costs the database"
FINISHED = int(os.environ.get("BENCH_FINISHED", 1_000_000))
RETIRED = int(os.environ.get("BENCH_RETIRED", 1_000_000))
LANES, ROUNDS, BATCHES = 50_000, 40, 100
DAY = 5_000_000
"""Jobs that finish on a busy day."""
NONE, HISTORY = "no finished job", "a history"
RATE, RATIO = "claim and settle by 100", "rate to that without, median of the turns"
STEPS = ("insert", "claim", "settle")
RETENTION, LEFT = "jobs leave retention", "dead rows that they leave"


def run(servers: Servers, short: bool) -> list[Row]:
    """The WAL, which all of the server writes, before there is something to vacuum; the history and
    no history in turns; then the others on the database without history."""
    tenth = 10 if short else 1
    bare, full = _Inside(servers, "bare"), _Inside(servers, "history")
    rows = _wal(bare) + _heartbeat(bare) + _history(bare, full, FINISHED // tenth)
    rows += _lanes(bare) + _retention(bare, RETIRED // tenth)
    servers.drop()
    return rows


class _Inside:
    """A database, and functions that are called in a process that works on it."""

    def __init__(self, servers: Servers, name: str) -> None:
        self._servers = servers
        self._env = servers.environment(servers.database(f"storage_{name}"), servers.broker())
        servers.run(self._env, "-m", "bench.sides.tailrace", "prepare")

    def call(self, name: str, *numbers: int) -> Any:
        words = ("-m", "bench.jobs.inside.inside_storage", name, *map(str, numbers))
        return json.loads(self._servers.run(self._env, *words))

    @contextmanager
    def rates(self) -> Iterator[Callable[[], float]]:
        """Start a process that claims and settles; give what has it do so for a moment, and returns
        the jobs per second."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.jobs.inside.inside_storage", "rates", str(BATCHES)],
            cwd=ROOT, env=self._env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        pipe, answers = process.stdin, process.stdout
        assert pipe  # noqa: S101
        assert answers  # noqa: S101

        def rate() -> float:
            print(file=pipe, flush=True)
            return float(answers.readline())

        try:
            yield rate
        finally:
            process.kill()
            process.wait()


def _history(bare: _Inside, full: _Inside, finished: int) -> list[Row]:
    seconds = full.call("fill", finished)
    rates: dict[str, list[float]] = {NONE: [], HISTORY: []}
    with bare.rates() as of_bare, full.rates() as of_full:
        sides = [(NONE, of_bare), (HISTORY, of_full)]
        for number in range(-1, ROUNDS):
            for side, rate in sides:
                rates[side] += [rate()] if number >= 0 else []  # the first turn is to warm up
            sides.reverse()
    note = f"{finished:,} finished jobs, inserted in {seconds:.0f} s"
    turns = zip(rates[HISTORY], rates[NONE], strict=True)
    return [
        Row("storage", NONE, RATE, median(rates[NONE]), "jobs/s"),
        Row("storage", HISTORY, RATE, median(rates[HISTORY]), "jobs/s", note),
        Row("storage", HISTORY, RATIO, median(beside / without for beside, without in turns), ""),
    ]


def _wal(inside: _Inside) -> list[Row]:
    sizes = inside.call("wal", 200)
    kinds = sizes.pop("kinds")
    rows = [Row("storage", name, "WAL per job", size, "B") for name, size in sizes.items()]
    return rows + [
        Row("storage", kind, "WAL per job, by kind", size, "B", f"{count:.2f} records")
        for kind, count, size in kinds
    ]


def _heartbeat(inside: _Inside) -> list[Row]:
    sizes = inside.call("heartbeat", 40)
    return [
        Row("storage", "one long job", "WAL per renewal", sizes["one"], "B"),
        Row("storage", "each of 100 jobs", "WAL per renewal", sizes["many"], "B"),
        Row("storage", "one long job", "HOT renewals", 100 * sizes["hot"], "%"),
    ]


def _lanes(inside: _Inside) -> list[Row]:
    medians = inside.call("lanes", LANES, 25)
    return [
        Row("storage", name, f"claim, {LANES:,} lanes wait", time, "ms")
        for name, time in medians.items()
    ]


def _retention(inside: _Inside, count: int) -> list[Row]:
    gone = inside.call("retention", count)
    note = f"{count:,} in {gone['seconds']:.1f} s; {gone['bytes'] / 1024**2:,.0f} MB stay"
    return [
        Row("storage", "prune", RETENTION, count / gone["seconds"], "jobs/s", note),
        Row("storage", "prune", LEFT, gone["dead"], "rows"),
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """The bars of the design: what is live does not pay for what was."""
    per_job = sum(find(rows, step, "WAL per job") for step in STEPS)
    ratio = find(rows, HISTORY, RATIO)
    slowest = max(
        find(rows, name, f"claim, {LANES:,} lanes wait") for name in ("bench.fair", "bench.ordered")
    )
    return [
        Target(f"{RATE}, with a history against none", ratio, 0.95),
        Target("bytes of WAL per job, insert to completed, by 100", per_job, 600, "less"),
        Target(f"seconds until {DAY:,} jobs have left retention, at that rate",
               DAY / (find(rows, "prune", RETENTION) or 1), 1, "less"),
        Target(LEFT, find(rows, "prune", LEFT), 0, "less"),
        Target(f"ms of a claim, {LANES:,} lanes wait, none due", slowest, 5, "less"),
        Target("bytes of WAL of a renewal, one long job",
               find(rows, "one long job", "WAL per renewal"), 150, "less"),
        Target("% of renewals that are HOT",
               find(rows, "one long job", "HOT renewals"), 95),
    ]  # fmt: skip
