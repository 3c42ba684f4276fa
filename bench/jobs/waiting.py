"""Calls that wait: jobs that each ask a local HTTP server which answers after 100 ms.

A side publishes all its jobs, then one worker with two processes works them off. What two bare
clients reach with as many calls in flight is measured in the same run, and what the server can
answer at all. Nothing here fails by time: the row of a package that is not installed says LEFT OUT.
The server counts: if a call is missing or doubled, the figure is 0.
"""

import json
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from statistics import mean
from subprocess import Popen

import psutil
import psycopg

from bench.report import Row, Target, find
from bench.servers import LOGS, Servers, dsn
from bench.sides.waiting.server import SECONDS

TITLE = "Waiting: calls to a server that answers after 100 ms, two processes"
PROCESSES = 2
CONCURRENCY = 100
RATE, CPU, MEMORY = "calls", "CPU of the worker per job", "memory of a process while it waits"
DATABASE_CPU = "CPU of the worker's PostgreSQL sessions per job"
OURS, PLAIN, BARE, LIMIT = "Tailrace, async", "Tailrace, handle", "no queue", "no queue, 2 × 500"
SIDES_FOLDER = "bench.sides.waiting"


@dataclass(frozen=True)
class Side:
    """A program with publish N and a worker; `calls` take it about ten seconds."""

    name: str
    module: str
    calls: int
    work: tuple[str, ...]
    short_calls: int
    prepare: bool = False
    needs: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


MANY = str(CONCURRENCY)
SIDES = (
    Side(OURS, "tailrace", 20_000, ("work",), 2_000, True,
         variables={"BENCH_HANDLER": "bench.wait_together"}),
    Side(PLAIN, "tailrace", 200, ("work",), 40, True,
         variables={"BENCH_HANDLER": "bench.wait"}),
    Side("Celery, prefork", "celery_side", 200, ("prefork",), 40),
    Side("Celery, gevent", "celery_side", 10_000, ("gevent", MANY), 2_000, needs=("gevent",)),
    Side("Dramatiq, 8 threads", "dramatiq_side", 1_500, ("work", "8"), 300, needs=("dramatiq",)),
    Side("Dramatiq, 100 threads", "dramatiq_side", 10_000, ("work", MANY), 1_000,
         needs=("dramatiq",)),
    Side("Procrastinate, async", "procrastinate_side", 3_000, ("work", MANY), 500, True,
         needs=("procrastinate",)),
    Side("taskiq, async", "taskiq_side", 10_000, ("work", MANY), 2_000,
         needs=("taskiq", "taskiq_redis")),
)  # fmt: skip


def run(servers: Servers, short: bool) -> list[Row]:
    """The server's limit, then all sides, one after the other."""
    rows = [
        _bare(servers, BARE, CONCURRENCY, 2_000 if short else 10_000),
        _bare(servers, LIMIT, 500, 5_000 if short else 30_000),
    ]
    limit = rows[1].value
    for side in SIDES:
        rows += _measure(servers, side, short, limit)
    return rows


def ideal() -> float:
    """Calls per second of two processes if nothing but the server took time."""
    return PROCESSES * CONCURRENCY / SECONDS


def targets(rows: Sequence[Row]) -> list[Target]:
    """Near to what is possible, and ahead of each peer."""
    ours = find(rows, OURS, RATE)
    possible = min(ideal(), find(rows, LIMIT, RATE))
    peers = [side for side in SIDES[2:] if find(rows, side.name, RATE)]
    return [
        Target("Tailrace, async, as a share of the possible", ours / (possible or 1), 0.8),
        *(
            Target(f"Tailrace, async, against {side.name}", ours / find(rows, side.name, RATE), 1)
            for side in peers
        ),
    ]


class _Server:
    """The HTTP server, in a process of its own."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._process = servers.start(
            "waiting-server", dict(servers.environment("", "")), "-m", f"{SIDES_FOLDER}.server"
        )
        self.port = int(self._port())

    def _port(self, patience: float = 30) -> str:
        until = time.monotonic() + patience
        while not (text := (LOGS / "waiting-server.log").read_text()).endswith("\n"):
            if time.monotonic() > until:
                raise SystemExit("bench: the HTTP server does not start")
            time.sleep(0.05)
        return text

    def stats(self) -> dict[str, float]:
        """What it counted so far."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(b"GET /stats HTTP/1.1\r\nHost: bench\r\n\r\n")
            reply = b""
            while not reply.endswith(b"}"):
                reply += connection.recv(4096)
        answer: dict[str, float] = json.loads(reply.partition(b"\r\n\r\n")[2])
        return answer

    def stop(self) -> None:
        self._servers.stop(self._process)


def _bare(servers: Servers, name: str, in_flight: int, calls: int) -> Row:
    server = _Server(servers)
    env = servers.environment("", "", BENCH_DESTINATION=str(server.port))
    words = ["-m", f"{SIDES_FOLDER}.bare", str(calls), str(in_flight)]
    for client in [servers.start(f"waiting-bare-{n}", env, *words) for n in range(PROCESSES)]:
        client.wait()
        servers.stop(client)
    stats = server.stats()
    server.stop()
    note = f"two bare asyncio clients, {in_flight} each; {stats['most']:.0f} in flight at most"
    return Row("waiting", name, RATE, stats["rate"], "calls/s", note, stats)


def _measure(servers: Servers, side: Side, short: bool, limit: float) -> list[Row]:
    lacking = [package for package in side.needs if find_spec(package) is None]
    if lacking:
        return [Row.left_out("waiting", side.name, RATE, lacking)]
    calls = side.short_calls if short else side.calls
    server = _Server(servers)
    env = servers.environment(
        servers.database("waiting"), servers.broker(), BENCH_DESTINATION=str(server.port),
        **side.variables,
    )  # fmt: skip
    env["BENCH_PROCESSES"] = str(PROCESSES)
    if side.module != "tailrace":
        del env["DJANGO_SETTINGS_MODULE"]  # else Celery loads the project into its workers
    module = f"{SIDES_FOLDER}.{side.module}"
    if side.prepare:
        servers.run(env, "-m", module, "prepare")
    servers.run(env, "-m", module, "publish", str(calls))
    worker = servers.start(f"waiting-{side.module}", env, "-m", module, *side.work)
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        watch = _Watch(worker, server, connection)
        wrong = watch.until(calls)
        if side.module == "tailrace":
            wrong = wrong or _until_completed(connection, calls)
    stats = server.stats()
    servers.stop(worker)
    server.stop()
    servers.drop()
    rate = 0 if wrong else stats["rate"]
    shares = f"{rate / ideal():.0%} of {ideal():,.0f}/s, {rate / (limit or 1):.0%} of the server's"
    note = wrong or f"{shares}; {calls:,} calls, {stats['most']:.0f} in flight at most"
    return [
        Row("waiting", side.name, RATE, rate, "calls/s", note, stats),
        *([] if wrong else watch.rows(side.name)),
    ]


def _until_completed(connection: psycopg.Connection, calls: int, patience: float = 30) -> str:
    """Wait until all jobs are settled; return an error if they are not."""
    until = time.monotonic() + patience
    query = "SELECT count(*) FROM tailrace_jobs_job WHERE state = 'completed'"
    while (row := connection.execute(query).fetchone()) != (calls,):
        if time.monotonic() > until:
            return f"WRONG: {row and row[0]} jobs of {calls} are completed"
        time.sleep(0.1)
    return ""


class _Watch:
    """Looks at a worker while it works: its CPU time, and its processes that call the server."""

    def __init__(
        self, worker: Popen[bytes], server: _Server, connection: psycopg.Connection
    ) -> None:
        self._worker, self._server = psutil.Process(worker.pid), server
        self._connection = connection
        self._cpu: list[tuple[float, float, float]] = []
        """At each look: calls answered, CPU seconds of the worker, and of its sessions."""
        self._sessions: dict[int, float] = {}
        self._memory: list[float] = []
        """MB of each process that calls, at each look."""

    def until(self, calls: int, patience: float = 60) -> str:
        """Wait for that many answers; return an error if none came for `patience` seconds."""
        answered, since = 0.0, time.monotonic()
        while answered < calls:
            stats = self._server.stats()
            if stats["answered"] > answered:
                answered, since = stats["answered"], time.monotonic()
                self._look(answered, answered == calls)
            elif time.monotonic() - since > patience:
                return f"WRONG: {answered:.0f} calls of {calls}, and no more came"
            time.sleep(0.2)
        if (stats["answered"], stats["distinct"]) != (calls, calls):
            return f"WRONG: {stats['answered']:.0f} calls of {stats['distinct']:.0f} jobs"
        return ""

    def rows(self, side: str) -> list[Row]:
        """CPU per job between the first look and the last, and memory."""
        (first, *began), (last, *ended) = self._cpu[0], self._cpu[-1]
        note = ""
        if first == last:
            first, began, note = 0, [0.0, 0.0], "with the start of the worker: it was too short"
        jobs = last - first
        cpu, database = (1000 * (b - a) / jobs for a, b in zip(began, ended, strict=True))
        rows = [Row("waiting", side, CPU, cpu, "ms", note)]
        if self._sessions:
            rows.append(Row("waiting", side, DATABASE_CPU, database, "ms"))
        if self._memory:
            note = f"PSS, mean of {len(self._memory)} looks"
            rows.append(Row("waiting", side, MEMORY, mean(self._memory), "MB", note))
        return rows

    def _look(self, answered: float, is_last: bool) -> None:
        family = [self._worker, *self._worker.children(recursive=True)]
        self._sessions |= self._seconds_of_sessions()
        self._cpu.append(
            (answered, sum(map(_cpu_seconds, family)), sum(self._sessions.values()))
        )  # fmt: skip
        if len(self._memory) < 3 * PROCESSES and not is_last:
            callers = [process for process in family if self._calls(process)]
            self._memory += [process.memory_full_info().pss / 2**20 for process in callers]

    def _calls(self, process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return any(
                end.raddr and end.raddr.port == self._server.port
                for end in process.net_connections()
            )
        return False

    def _seconds_of_sessions(self) -> dict[int, float]:
        """CPU seconds of each session in the side's database; none if the server is elsewhere."""
        rows = self._connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        seconds = {}
        for (pid,) in rows:
            with suppress(psutil.NoSuchProcess):
                if (process := psutil.Process(pid)).name().startswith("postgres"):
                    seconds[pid] = _cpu_seconds(process)
        return seconds


def _cpu_seconds(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0
