"""What the processes of a worker hold after 1,000 jobs, and how much CPU a command needs to start.

The worker serves all its queues with two children, as it ships. Pss counts what a process has alone
and its part of what it shares: the sum over all processes is what the machine gives for them.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import psycopg

from bench.report import Row, Target, find
from bench.servers import LOGS, ROOT, Servers, dsn

TITLE = "Memory of a worker's processes, and CPU at the start of commands"
JOBS = 1000
CHILDREN = 2
CORE, PLATFORM, COMMANDS = "the core in a host project", "the platform", "manage.py"
CHILD = "each child"
ALL = "the whole worker"
BARS = {CORE: 70, PLATFORM: 110}
START_SECONDS = 0.8
STARTS = ("queues", "verdict", "shell -c pass")


def run(servers: Servers, short: bool) -> list[Row]:
    """Both sides one after the other, then the commands on the platform's database."""
    core = servers.environment(
        servers.database("core"),
        servers.broker(),
        DJANGO_SETTINGS_MODULE="bench.core_host.settings",
    )
    rows = _worker(
        servers,
        CORE,
        "bench.core_host",
        core,
        ["core_host.do_nothing", "core_host.do_nothing_else"],
    )
    platform = servers.environment(
        servers.database("platform"), servers.broker(), BENCH_VARIANT="nothing"
    )
    rows += _worker(
        servers, PLATFORM, "tailrace.config", platform, ["bench.effect_a", "bench.effect_b"]
    )
    env = platform | {"DJANGO_SETTINGS_MODULE": "tailrace.config.settings"}
    for command in STARTS:
        _cpu_seconds(env, command.split())  # compiles
        seconds = [_cpu_seconds(env, command.split()) for _ in range(3 if short else 7)]
        rows.append(
            Row("footprint", COMMANDS, command, median(seconds), "s", "user + system, median")
        )
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    return [
        *(
            Target(f"MB of a child of {side}", find(rows, side, CHILD), bar, "less")
            for side, bar in BARS.items()
        ),
        Target(
            "CPU seconds until a command has started",
            max(find(rows, COMMANDS, command) for command in STARTS), START_SECONDS, "less",
        ),
    ]  # fmt: skip


def _worker(
    servers: Servers, side: str, app: str, env: dict[str, str], queues: list[str]
) -> list[Row]:
    servers.run(env, "-m", "bench.jobs.inside.footprint", "prepare")
    worker = servers.start(
        "footprint", env, "-m", "celery", "-A", app, "worker", "-l", "WARNING",
        "-c", str(CHILDREN),
    )  # fmt: skip
    _until_ready(worker.pid)
    idle = mean(map(_pss_mb, _children(worker.pid)))
    servers.run(env, "-m", "bench.jobs.inside.footprint", "fill", str(JOBS // len(queues)), *queues)
    _until_done(env)
    pids = _children(worker.pid)
    rows = [
        Row("footprint", side, "each child, before its first job", idle, "MB", "Pss"),
        Row("footprint", side, CHILD, mean(map(_pss_mb, pids)), "MB", f"Pss after {JOBS:,} jobs"),
        Row(
            "footprint",
            side,
            ALL,
            sum(map(_pss_mb, [worker.pid, *pids])),
            "MB",
            "Pss, with two children",
        ),
    ]
    servers.stop(worker)
    return rows


def _until_ready(pid: int) -> None:
    """Wait for the children, and until they have been at rest for a while."""
    until = time.monotonic() + 120
    while len(_children(pid)) < CHILDREN:
        if time.monotonic() > until:
            raise SystemExit("bench: the worker has no children")
        time.sleep(0.2)
    time.sleep(5)


def _until_done(env: dict[str, str]) -> None:
    query = "SELECT count(*) FROM tailrace_jobs_job WHERE state IN ('pending', 'running')"
    until = time.monotonic() + 120
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        while connection.execute(query).fetchone() != (0,):
            if time.monotonic() > until:
                raise SystemExit("bench: the jobs are not done")
            time.sleep(0.2)
    time.sleep(2)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _pss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"bench: no Pss of process {pid}")


def _cpu_seconds(env: dict[str, str], command: list[str]) -> float:
    """User and system time of a `manage.py` command whose modules are compiled."""
    env = env | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(LOGS / "pycache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=env, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
