"""50,000 jobs are due at once, as when a destination comes back: how fast it gets them.

The destination is a local server that takes 1 ms per request over persistent connections. Two other
queues get 10 events per second each, before and during.
"""

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.report import Row, Target, find, percentile
from bench.servers import LOGS, Servers, dsn

TITLE = "Herd: 50,000 jobs due at once after an outage"


def steady(servers: Servers, env: dict[str, str], events: int, rate: int) -> list[list[float]]:
    """Publish at a rate; return the events' ids with the times of their commits."""
    words = map(str, (events, rate))
    return json.loads(servers.run(env, "-m", "bench.jobs.inside.in_process", "steady", *words))


def await_lines(path: Path, count: int, seconds: float = 120) -> None:
    """Wait until the handlers have written that many lines."""
    until = time.monotonic() + seconds
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        if time.monotonic() > until:
            raise SystemExit(f"bench: no {count} lines in {path} within {seconds:g} s")
        time.sleep(0.1)


def differences(committed: Sequence[Sequence[float]], stamps: Path) -> list[float]:
    """Milliseconds from each commit to each of its handlers' beginnings."""
    ends = {int(id): at for id, at in committed}
    lines = (line.split() for line in stamps.read_text().splitlines())
    return [(float(at) - ends[int(id)]) * 1000 for id, at in lines if int(id) in ends]


class Destination:
    """Answers each byte after 1 ms; counts the requests of each second."""

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._serve, args=[ready], daemon=True).start()
        ready.wait(10)

    def _serve(self, ready: threading.Event) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1):
                self.calls.append(time.monotonic())
                await asyncio.sleep(0.001)
                writer.write(b"y")
            writer.close()

        async def serve() -> None:
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        self._loop.run_until_complete(serve())


def run(servers: Servers, short: bool) -> list[Row]:
    """Without a limit, then with a rate limit of 500 a second on the queue."""
    jobs = 5_000 if short else 50_000
    return _herd(servers, jobs, None) + _herd(servers, 5_000, 500)


def _herd(servers: Servers, jobs: int, limit: int | None) -> list[Row]:
    destination = Destination()
    stamps = LOGS / "stamps"
    stamps.unlink(missing_ok=True)
    env = servers.environment(
        servers.database("herd"), servers.broker(), BENCH_VARIANT="call", BENCH_STAMPS=str(stamps),
        BENCH_DESTINATION=str(destination.port),
    )  # fmt: skip
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    side = f"rate_limit {limit}/s" if limit else "no limit"
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        connection.execute("UPDATE tailrace_jobs_queue SET rate_limit = %s WHERE name LIKE %s",
                           [limit, "bench.effect%"])  # fmt: skip
        worker = servers.start("herd", env, "-m", "bench.sides.tailrace", "work")
        steady(servers, env, 20, 10)
        await_lines(stamps, 40)
        before = steady(servers, env, 100, 10)
        await_lines(stamps, 240)
        servers.run(env, "-m", "bench.jobs.inside.in_process", "fill", str(jobs), "1")
        during = steady(servers, env, 100, 10)
        wanted = 440
        until = time.monotonic() + 300
        while len(destination.calls) < jobs and time.monotonic() < until:
            time.sleep(0.2)
        await_lines(stamps, wanted)
    servers.stop(worker)
    servers.drop()
    calls = destination.calls
    seconds = calls[-1] - calls[0]
    later = [at for at in calls if at > calls[0] + 1]  # a bucket is a second deep
    offered = len(later) / (later[-1] - later[0])
    rows = [
        Row("herd", side, "time to drain", seconds, "s", f"{len(calls):,} requests, {jobs:,} jobs"),
        Row("herd", side, "offered to the destination", offered, "requests/s"),
    ]
    for when, commits in (("before", before), ("during", during)):
        waits = differences(commits, stamps)
        for share in (0.5, 0.99):
            work = f"other queues' p{share * 100:g} {when}"
            rows.append(Row("herd", side, work, percentile(waits, share), "ms"))
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """The destination gets no more than its rate limit, and the other queues do not wait."""
    limited = find(rows, "rate_limit 500/s", "offered to the destination")
    return [Target("requests/s under a limit of 500/s", limited, 550, "less")]
