"""What a worker's processes hold after a million jobs."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.house import House, dsn
from bench.report import Bar, Row, find

TITLE = "Memory of a worker's processes"
SHARES = (0.1, 0.25, 0.5, 1.0)


def run(house: House, short: bool) -> list[Row]:
    """Jobs that do nothing, in batches of 100, through the worker as it ships."""
    jobs = 50_000 if short else 1_000_000
    env = house.environment(house.database("memory"), house.broker(), BENCH_VARIANT="nothing")
    house.run(env, "-m", "bench.sides.tailrace", "prepare")
    house.run(env, "-m", "bench.inside", "fill", str(jobs))
    worker = house.start("memory", env, "-m", "bench.sides.tailrace", "work")
    rows = []
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE jobs_job")
        for share in SHARES:
            _until_done(connection, int(jobs * share))
            note = f"after {int(jobs * share):,} jobs"
            value = _children_mb(worker.pid)
            rows.append(Row("memory", "each child, mean", f"{share:.0%}", value, "MB", note))
    house.stop(worker)
    house.drop()
    return rows


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Flat."""
    first, last = (find(rows, "each child, mean", f"{share:.0%}") for share in (0.1, 1.0))
    return [Bar("memory after all jobs against after a tenth", last / first, 1.05, "less")]


def _until_done(connection: psycopg.Connection, count: int, patience: float = 120) -> None:
    done, since = 0, time.monotonic()
    query = "SELECT count(*) FROM jobs_job WHERE state = 'completed'"
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
