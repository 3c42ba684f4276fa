"""Throughput and latency while another session holds a snapshot, as pg_dump does.

One database, one steady load: without a snapshot, with one, and without it again. At the end of
each part bursts are worked off, which tell the throughput. What ten minutes under load would leave
behind (180,000 claimed jobs; 24,000 versions of the rows of queues) is made in bulk when the
snapshot has begun; with BENCH_HELD_SECONDS=600 it comes about by the load itself.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.jobs.latency import joined
from bench.report import Row, Target, find, percentile
from bench.servers import LOGS, Servers, dsn

TITLE = "A held snapshot: throughput and latency beside pg_dump"
EVENTS_PER_SECOND, OWED = 75, 4
SECONDS = int(os.environ.get("BENCH_HELD_SECONDS", "10"))
AT_ONCE = 600
"""Seconds of load whose remains are made in bulk, unless the load takes as long."""
AFTER_SECONDS = 15
"""Of load after the snapshot's end; with what a burst takes to begin, less than 30."""
BURST_EVENTS, BURSTS = 1_000, 3
WITHOUT, HELD, AFTER = "without a snapshot", "a snapshot held", "after its end"
RATE, WAIT = "jobs of a burst", "commit → start, p50"
TABLES = (
    "tailrace_jobs_live",
    "tailrace_jobs_queue",
    "tailrace_jobs_queueactivity",
    "tailrace_jobs_total",
    "tailrace_jobs_throughput",
)


@dataclass(frozen=True)
class _Platform:
    """What is measured: its processes, and the file in which each job writes when it began."""

    servers: Servers
    env: dict[str, str]
    stamps: Path

    def part(self, name: str, seconds: int) -> list[Row]:
        """Load it for so long, then work off bursts."""
        published = LOGS / "published-held"
        publisher = ("-m", "bench.sides.steady_load.publisher", "tailrace", str(EVENTS_PER_SECOND))
        self.servers.run(self.env, *publisher, str(seconds), str(published))
        waits, _calls, lost = joined(published, self.stamps)
        late = waits[-10 * EVENTS_PER_SECOND * OWED :]
        rates = sorted(self._burst() for _ in range(BURSTS))
        wrong = f"WRONG: {lost} starts lack; " if lost else ""
        dead = self._dead()
        note = f"{wrong}dead rows: {', '.join(f'{t} {n:,}' for t, n in dead.items())}"
        bursts = ", ".join(f"{rate:,.0f}" for rate in rates)
        p99 = percentile(late, 0.99)
        looks = json.loads(self.servers.run(self.env, "-m", "bench.jobs.inside.dead_rows", "look"))
        return [
            *(
                Row("held_snapshot", name, what, best, "ms", f"best of 50; worst {worst:.0f}")
                for what, (best, worst) in looks.items()
            ),
            Row("held_snapshot", name, RATE, rates[len(rates) // 2], "/s", f"of {bursts}"),
            Row("held_snapshot", name, WAIT, percentile(late, 0.5), "ms",
                f"of the last 10 s; p99 {p99:.0f} ms; {note}", {"dead": dead}),
        ]  # fmt: skip

    def _burst(self) -> float:
        """Publish many events at once; return the jobs per second while they are worked off."""
        before, wanted = len(self._starts()), BURST_EVENTS * OWED
        words = ("publish", str(BURST_EVENTS), str(BURST_EVENTS))
        self.servers.run(self.env, "-m", "bench.sides.tailrace", *words)
        until = time.monotonic() + 120
        while len(starts := self._starts()[before:]) < wanted:
            if time.monotonic() > until:
                return 0.0
            time.sleep(0.1)
        return (wanted - 1) / (max(starts) - min(starts))

    def _starts(self) -> list[float]:
        text = self.stamps.read_text() if self.stamps.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [float(line.split()[1]) for line in lines]

    def _dead(self) -> dict[str, int]:
        sql = "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE relname = ANY(%s)"
        with psycopg.connect(dsn(self.env["DATABASE_URL"])) as connection:
            counts = dict(connection.execute(sql, [list(TABLES)]).fetchall())
        return {table: counts[table] for table in TABLES if table in counts}

    def age(self, seconds: int) -> None:
        """Leave behind what so many seconds of load would."""
        self.servers.run(self.env, "-m", "bench.jobs.inside.dead_rows", "leave", str(seconds))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Hold a snapshot of the database."""
        with psycopg.connect(dsn(self.env["DATABASE_URL"])) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SELECT count(*) FROM tailrace_jobs_queue")
            yield


def run(servers: Servers, short: bool) -> list[Row]:
    """The three parts."""
    seconds = SECONDS // 2 if short else SECONDS
    with _running(servers) as platform:
        rows = platform.part(WITHOUT, seconds)
        with platform.snapshot():
            if seconds < AT_ONCE:
                platform.age(AT_ONCE // 10 if short else AT_ONCE)
            rows += platform.part(HELD, seconds)
        return rows + platform.part(AFTER, AFTER_SECONDS)


def targets(rows: Sequence[Row]) -> list[Target]:
    """How much of the throughput is left."""
    without = find(rows, WITHOUT, RATE) or 1.0
    held, after = find(rows, HELD, RATE), find(rows, AFTER, RATE)
    return [
        Target("throughput after ten minutes with a snapshot", held / without, 0.5),
        Target("throughput within 30 s of its end", after / without, 0.95),
    ]


@contextmanager
def _running(servers: Servers) -> Iterator[_Platform]:
    stamps = LOGS / "stamps-held"
    stamps.unlink(missing_ok=True)
    env = servers.environment(
        servers.database("held_snapshot"), servers.broker(),
        BENCH_VARIANT="stamp", BENCH_STAMPS=str(stamps),
    )  # fmt: skip
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    beat = ("-m", "celery", "-A", "tailrace.config", "beat", "--pidfile=", "-l", "WARNING")
    processes: list[Any] = [
        servers.worker(env, "held-worker"),
        servers.start("held-beat", env, *beat),
    ]
    try:
        yield _Platform(servers, env, stamps)
    finally:
        for process in processes:
            servers.stop(process)
        servers.drop()
