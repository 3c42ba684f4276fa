"""Celery tasks that run as jobs, and the same tasks of Celery with `acks_late`, after the same
faults: how many calls were lost, and how many ran twice."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

import psycopg

from bench.celery_host.celery_tasks import CAREFUL, JOBS, WAYS, environment, program
from bench.report import Row, Target
from bench.servers import Servers, dsn

TITLE = "Celery tasks after faults: lost and repeated calls"
CALLS = 1000
BEFORE = 0.3
"""The share of the calls that have run when a process is killed."""
QUIET_SECONDS = 90
"""A call that has not run when nothing has for so long is lost. Leases last 60 s."""
LOST, TWICE = "{}: lost", "{}: ran twice"
Fault = Callable[[Servers, dict[str, str], psycopg.Connection, int], None]


def flushed_broker(
    servers: Servers, env: dict[str, str], connection: psycopg.Connection, calls: int
) -> None:
    """Delete all keys of the broker while all calls wait; then a worker starts."""
    servers.broker()
    _worked_off(servers, connection, _worker(servers, env), calls)


def killed_process(
    servers: Servers, env: dict[str, str], connection: psycopg.Connection, calls: int
) -> None:
    """Kill a process of the worker's pool in the middle."""
    worker = _worker(servers, env)
    _await(connection, int(calls * BEFORE))
    children = subprocess.run(
        ["pgrep", "-P", str(worker.pid)], capture_output=True, text=True
    ).stdout.split()
    os.kill(int(children[0]), signal.SIGKILL)
    _worked_off(servers, connection, worker, calls)


def killed_worker(
    servers: Servers, env: dict[str, str], connection: psycopg.Connection, calls: int
) -> None:
    """Kill the worker with all its processes in the middle, and start another one."""
    worker = _worker(servers, env)
    _await(connection, int(calls * BEFORE))
    os.killpg(worker.pid, signal.SIGKILL)
    _worked_off(servers, connection, _worker(servers, env), calls)


FAULTS: dict[str, Fault] = {
    "the broker is flushed": flushed_broker,
    "a process of the pool is killed": killed_process,
    "the worker is killed": killed_worker,
}


def run(servers: Servers, short: bool) -> list[Row]:
    rows: list[Row] = []
    for name, fault in FAULTS.items():
        for side in (JOBS, CAREFUL):
            rows += _after(servers, side, name, fault, CALLS // (10 if short else 1))
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """As jobs, no call is lost."""
    lost = sum(row.value for row in rows if row.side == JOBS and row.work.endswith("lost"))
    return [Target("calls that run as jobs, lost after all faults", lost, 0, "less")]


def _after(servers: Servers, side: str, name: str, fault: Fault, calls: int) -> list[Row]:
    env = environment(servers, side)
    servers.run(env, *program("call", str(calls), "1"))
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        fault(servers, env, connection, calls)
        row = connection.execute(
            "SELECT count(DISTINCT job), count(*) FROM bench_effect"
        ).fetchone()
    servers.drop()
    ran, effects = row or (0, 0)
    note = f"of {calls:,} calls ({WAYS[side]})"
    return [
        Row("celery_faults", side, LOST.format(name), calls - ran, "calls", note),
        Row("celery_faults", side, TWICE.format(name), effects - ran, "calls", note),
    ]


def _worker(servers: Servers, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return servers.start("celery-faults", env, *program("work"))


def _await(connection: psycopg.Connection, count: int, patience: float = QUIET_SECONDS) -> None:
    """Wait until so many effects are there, or there are no new ones for `patience` seconds."""
    seen, since = -1, time.monotonic()
    while seen < count and time.monotonic() - since < patience:
        row = connection.execute("SELECT count(DISTINCT job) FROM bench_effect").fetchone()
        if row and row[0] > seen:
            seen, since = row[0], time.monotonic()
        time.sleep(0.01)


def _worked_off(
    servers: Servers,
    connection: psycopg.Connection,
    worker: subprocess.Popen[bytes],
    calls: int,
) -> None:
    _await(connection, calls)
    servers.stop(worker)
