"""Celery tasks that run as jobs, beside the same tasks run by Celery: careful (acks_late, and a
status row per task) and stateless. Workers have a process per core."""

from collections.abc import Sequence

import psycopg

from bench.jobs.throughput import await_effects, rate_of_effects
from bench.report import Row, Target, find, percentile
from bench.servers import Servers, dsn

TITLE = "Celery tasks that run as jobs"
JOBS, CAREFUL, STATELESS = "as jobs", "Celery, careful", "Celery, stateless"
BACKLOG = "a backlog worked off"
WITH_EVENTS = "a backlog worked off, with Celery's events"
LATENCY = "delay().get(), p50"
GROUP, CHORD = "a group of {:,}", "a chord of {:,}"
CALLS = {JOBS: 20_000, CAREFUL: 5_000, STATELESS: 10_000}
WAYS = {JOBS: "jobs", CAREFUL: "careful", STATELESS: "stateless"}
PER_TRANSACTION = 100
LARGE, MEDIUM, SINGLE = 10_000, 1_000, 400


def run(servers: Servers, short: bool) -> list[Row]:
    share = 10 if short else 1
    rows = [_backlog(servers, side, CALLS[side] // share) for side in WAYS]
    rows += [_backlog(servers, side, CALLS[side] // share, "-E") for side in (JOBS, STATELESS)]
    for side in (JOBS, STATELESS):
        rows += _answers(servers, side, share)
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """Against Celery: throughput of short tasks, and the wait for a result."""
    rate, careful, stateless = (find(rows, side, BACKLOG) for side in WAYS)
    ours, theirs = (find(rows, side, LATENCY) for side in (JOBS, STATELESS))
    return [
        Target("tasks as jobs against careful Celery", rate / (careful or 1), 2.5),
        Target("tasks as jobs against stateless Celery", rate / (stateless or 1), 2),
        Target("wait for a result against Celery's", ours / (theirs or 1), 1.5, "less"),
    ]


def environment(servers: Servers, side: str) -> dict[str, str]:
    env = servers.environment(
        servers.database("celery"),
        servers.broker(),
        BENCH_TASKS=WAYS[side],
        DJANGO_SETTINGS_MODULE="bench.celery_host.settings",
    )
    servers.run(env, *program("prepare"))
    return env


def program(*words: str) -> list[str]:
    return ["-m", "bench.celery_host.program", *words]


def _backlog(servers: Servers, side: str, calls: int, *options: str) -> Row:
    """Call the task first; then a worker with these options runs the calls."""
    env = environment(servers, side)
    servers.run(env, *program("call", str(calls), str(min(calls, PER_TRANSACTION))))
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        worker = servers.start(f"celery-{WAYS[side]}", env, *program("work", *options))
        wrong = await_effects(connection, calls)
        servers.stop(worker)
        rate = rate_of_effects(connection)
    servers.drop()
    work = WITH_EVENTS if options else BACKLOG
    return Row("celery_tasks", side, work, 0 if wrong else rate, "tasks/s", wrong)


def _answers(servers: Servers, side: str, share: int) -> list[Row]:
    """Let a program wait for results, one by one and of a group and a chord."""
    env = environment(servers, side)
    worker = servers.start(f"celery-{WAYS[side]}", env, *program("work"))

    def seconds(*words: str) -> list[float]:
        return [float(line) for line in servers.run(env, *program(*words)).split()]

    waits = seconds("latency", str(SINGLE // share))
    large, medium = LARGE // share, MEDIUM // share
    [group], [chord] = seconds("group", str(large)), seconds("chord", str(medium))
    servers.stop(worker)
    servers.drop()
    note = f"p99 {percentile(waits, 0.99) * 1000:.1f} ms"
    return [
        Row("celery_tasks", side, LATENCY, percentile(waits, 0.5) * 1000, "ms", note),
        Row("celery_tasks", side, GROUP.format(large), group, "s"),
        Row("celery_tasks", side, CHORD.format(medium), chord, "s"),
    ]
