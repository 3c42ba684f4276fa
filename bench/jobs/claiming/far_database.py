"""How many jobs per second one process does if the database is far away, 50 ms in each direction,
against the same database near by. Each call takes a millisecond."""

import time
from collections.abc import Sequence

import psycopg

from bench.report import Row, Target, find
from bench.servers import Servers, dsn
from tests.servers.relay import relay

TITLE = "A database that is far away"
QUEUE = "bench.short_call"
NEAR, FAR = "near", "50 ms away in each direction"
DELAYS = {NEAR: 0.0, FAR: 0.05}
WORK = "calls of 1 ms, one process"
JOBS = 6_000
PATIENCE = 300
_ENQUEUE = f"""
import sys, django
django.setup()
from tailrace.jobs.enqueue import enqueue_many
enqueue_many("{QUEUE}", [{{}}] * int(sys.argv[1]))
"""
_RATE = """
SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))::float8
FROM tailrace_jobs_job WHERE handler = %s AND state = 'completed'
"""


def run(servers: Servers, short: bool) -> list[Row]:
    """Both, one after the other."""
    return [_measured(servers, side, JOBS // 3 if short else JOBS) for side in DELAYS]


def targets(rows: Sequence[Row]) -> list[Target]:
    """Half of the rate at least."""
    far, near = (find(rows, side, WORK) for side in (FAR, NEAR))
    return [Target("far against near", far / (near or 1), 0.5)]


def _measured(servers: Servers, side: str, jobs: int) -> Row:
    env = servers.environment(servers.database("far"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    servers.run(env, "-c", _ENQUEUE, str(jobs))
    words = ("-m", "celery", "-A", "tailrace.config", "worker", "-l", "WARNING", "-c", "1")
    with relay(env["DATABASE_URL"], DELAYS[side]) as link:
        worker = servers.start("far", env | {"DATABASE_URL": link.url}, *words, "-Q", QUEUE)
        done, seconds = _wait_for(env["DATABASE_URL"], jobs)
        servers.stop(worker)
    servers.drop()
    note = f"{done:,} jobs in {seconds:.1f} s" if done == jobs else f"WRONG: {done} of {jobs} jobs"
    return Row("far_database", side, WORK, done / seconds if done == jobs else 0, "jobs/s", note)


def _wait_for(database: str, jobs: int) -> tuple[int, float]:
    until = time.monotonic() + PATIENCE
    with psycopg.connect(dsn(database), autocommit=True) as connection:
        while True:
            row = connection.execute(_RATE, [QUEUE]).fetchone()
            done, seconds = row if row and row[1] else (0, 1.0)
            if done >= jobs or time.monotonic() > until:
                return done, seconds
            time.sleep(0.5)
