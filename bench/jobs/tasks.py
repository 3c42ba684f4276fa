"""Tasks of Django's task framework: our backend beside django-tasks-db's, with a task that does
nothing. Each side enqueues a backlog, then its workers, a process per core, run it."""

import time
from collections.abc import Sequence

import psycopg

from bench.report import Row, Target, find
from bench.servers import Servers, dsn

TITLE = "Tasks of Django's task framework"
RUN = "a backlog run"
ENQUEUE = "enqueued one by one"
BOTH = "enqueued by a thousand, and run"
SIDES = {
    "Tailrace": (
        "tailrace.django_tasks.Backend",
        20_000,
        """SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))::float8
        FROM tailrace_jobs_job WHERE state = 'completed'""",
    ),
    "django-tasks-db": (
        "django_tasks_db.DatabaseBackend",
        4_000,
        """SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))::float8
        FROM django_tasks_database_dbtaskresult WHERE status = 'SUCCESSFUL'""",
    ),
}
"""The backend, the number of tasks, and the query for the finished ones and their seconds."""
PATIENCE = 120


def run(servers: Servers, short: bool) -> list[Row]:
    return [row for side in SIDES for row in _measure(servers, side, 10 if short else 1)]


def targets(rows: Sequence[Row]) -> list[Target]:
    """How many times faster tasks run than with django-tasks-db's workers."""
    ours, theirs = (find(rows, side, RUN) for side in SIDES)
    return [Target("@task, a backlog run, against django-tasks-db", ours / (theirs or 1), 10)]


def _measure(servers: Servers, side: str, share: int) -> list[Row]:
    backend, count, finished = SIDES[side]
    count //= share
    database = servers.database("tasks")
    env = servers.environment(
        database,
        servers.broker(),
        BENCH_TASKS=backend,
        DJANGO_SETTINGS_MODULE="bench.sides.tasks_settings",
    )
    module = ["-m", "bench.sides.tasks"]
    servers.run(env, *module, "prepare")
    at_once = min(count, 1000)
    seconds = float(servers.run(env, *module, "enqueue", str(count), str(at_once)).split()[-1])
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        worker = servers.start(f"tasks-{side}", env, *module, "work")
        ran, note = _ran(connection, finished, count)
        servers.stop(worker)
        one_by_one = servers.run(env, *module, "enqueue", str(at_once), "1").split()[-1]
    servers.drop()
    return [
        Row("tasks", side, RUN, count / ran if ran else 0, "tasks/s", note),
        Row("tasks", side, BOTH, count / (ran + seconds) if ran else 0, "tasks/s", note),
        Row("tasks", side, ENQUEUE, at_once / float(one_by_one), "tasks/s", ""),
    ]


def _ran(connection: psycopg.Connection, finished: str, count: int) -> tuple[float, str]:
    """Wait until all tasks are finished; return the seconds from the first begin to the last end,
    and a note. If tasks are missing, the seconds are 0."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        row = connection.execute(finished).fetchone()
        if row and row[0] == count:
            return float(row[1]), f"{count:,} tasks"
        time.sleep(0.25)
    return 0.0, f"WRONG: {row and row[0]} tasks of {count} are finished"
