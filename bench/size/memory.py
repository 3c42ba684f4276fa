"""The memory of a worker's processes after a million jobs."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.report import Row, Target, find
from bench.servers import Servers, dsn

TITLE = "Memory of a worker's processes"
SHARES = (0.1, 0.25, 0.5, 1.0)


def run(servers: Servers, short: bool) -> list[Row]:
    """Jobs that do nothing, in batches of 100, through the worker as it ships."""
    jobs = 50_000 if short else 1_000_000
    env = servers.environment(servers.database("memory"), servers.broker(), BENCH_VARIANT="nothing")
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    servers.run(env, "-m", "bench.jobs.inside.in_process", "fill", str(jobs))
    worker = servers.start("memory", env, "-m", "bench.sides.tailrace", "work")
    rows = []
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        for share in SHARES:
            _until_done(connection, int(jobs * share))
            note = f"after {int(jobs * share):,} jobs"
            value = _children_mb(worker.pid)
            rows.append(Row("memory", "each child, mean", f"{share:.0%}", value, "MB", note))
    servers.stop(worker)
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """Flat."""
    first, last = (find(rows, "each child, mean", f"{share:.0%}") for share in (0.1, 1.0))
    return [Target("memory after all jobs against after a tenth", last / first, 1.05, "less")]


def _until_done(connection: psycopg.Connection, count: int, patience: float = 120) -> None:
    done, since = 0, time.monotonic()
    query = "SELECT count(*) FROM tailrace_jobs_job WHERE state = 'completed'"
    while done < count:
        row = connection.execute(query).fetchone()
        if row and row[0] > done:
            done, since = row[0], time.monotonic()
        if time.monotonic() - since > patience:
            raise SystemExit(f"bench: {done} jobs of {count} are done, and no more came")
        time.sleep(0.5)


def _children_mb(pid: int) -> float:
    """The mean of what the pool's processes hold alone or share, by their proportion (Pss)."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    sizes = []
    for child in listed.split():
        if "beat" in Path(f"/proc/{child}/cmdline").read_text():
            continue
        for line in Path(f"/proc/{child}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                sizes.append(int(line.split()[1]) / 1024)
    return sum(sizes) / len(sizes)
