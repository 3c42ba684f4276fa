"""Where the time goes from the commit of one job to its call, when nothing else runs, beside the
same for a task of plain Celery."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from bench.app.parts import STATIONS
from bench.jobs.latency import plain_worker
from bench.report import Row, Target, find, percentile
from bench.servers import LOGS, Servers

TITLE = "Parts of the latency: one job at a time"
OURS, PLAIN = "Tailrace", "Celery"
WHOLE = "commit → call"
COUNT, WARM = 300, 30


def run(servers: Servers, short: bool) -> list[Row]:
    count = COUNT // 5 if short else COUNT
    return [row for side in (OURS, PLAIN) for row in _measure(servers, side, count)]


def targets(rows: Sequence[Row]) -> list[Target]:
    ours, theirs = (find(rows, side, WHOLE) for side in (OURS, PLAIN))
    return [Target("one job at a time, p50 against Celery's", ours / (theirs or 1), 1.5, "less")]


def _measure(servers: Servers, side: str, count: int) -> list[Row]:
    word, file = side.lower(), LOGS / f"parts-{side.lower()}"
    file.write_text("")
    env = servers.environment(
        servers.database("parts"),
        servers.broker(),
        BENCH_VARIANT="parts",
        BENCH_PARTS=str(file),
    )
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    if side == OURS:
        worker = servers.worker(env, "parts-worker")
    else:
        worker = plain_worker(servers, env, "parts-plain", ["plain.effect_a"])
    try:
        servers.run(env, "-m", "bench.sides.steady_load.one_at_a_time", word, str(count + WARM))
    finally:
        servers.stop(worker)
        servers.drop()
    return _rows(side, _jobs(file)[WARM:])


def _jobs(file: Path) -> list[dict[str, float]]:
    """Return the time of each station of each job: the first after its commit."""
    jobs: list[dict[str, float]] = []
    for line in sorted(file.read_text().splitlines(), key=lambda line: float(line.split("\t")[1])):
        station, at = line.split("\t")
        if station == "committed":
            jobs.append({})
        if jobs:
            jobs[-1].setdefault(station, float(at))
    return [job for job in jobs if "called" in job]


def _rows(side: str, jobs: Sequence[Mapping[str, float]]) -> list[Row]:
    stations = [name for name in STATIONS if sum(name in job for job in jobs) > len(jobs) * 0.9]
    rows = []
    for before, after in [*pairwise(stations), ("committed", "called")]:
        waits = [
            (job[after] - job[before]) * 1000 for job in jobs if before in job and after in job
        ]
        work = WHOLE if before == "committed" and after == "called" else f"{before} → {after}"
        note = f"p99 {percentile(waits, 0.99):.2f} ms"
        rows.append(Row("parts", side, work, percentile(waits, 0.5), "ms", note))
    return rows
