"""Claims of many processes at once, and of one where many lanes wait. Prints JSON.

claimers KIND PROCESSES SECONDS JOBS: claim and settle batches of 100 of one queue, without calls.
KIND: plain; ordered (of LANES lanes); limited (MAX_RUNNING); rate (a limit that is never reached).
lanes KIND LANES ROUNDS: claims where each lane has a job and none is due. KIND: fair or ordered.
"""

import json
import multiprocessing
import sys
import time
from typing import Any

import django

LANES = 5000
MAX_RUNNING = 1000
RATE = 1_000_000
BATCH = 100
WARM = 15
"""Jobs that a process does one by one before: sessions of workers last, and their statements are
planned."""


def claimers(kind: str, processes: int, seconds: int, jobs: int) -> None:
    """Fill the queue, start the processes together, and print what they did."""
    name = "bench.ordered" if kind == "ordered" else "bench.plain"
    _fill(name, kind, jobs)
    fork = multiprocessing.get_context("fork")
    barrier, results, left = fork.Barrier(processes), fork.Queue(), fork.Value("q", jobs)
    arguments = (name, seconds, barrier, results, left)
    workers = [fork.Process(target=_work, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    done = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    rate = sum(settled for settled, _empty, _last in done) / max(last for *_, last in done)
    print(json.dumps({"rate": rate, "empty": sum(empty for _settled, empty, _last in done)}))


def lanes(kind: str, count: int, rounds: int) -> None:
    """Print the milliseconds of each claim."""
    from bench.jobs.inside.in_process import timed
    from tailrace.db.connections import engine
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.claim import Limits, claim

    handler = registry.get(f"bench.{kind}")
    _insert(handler.name, count, count, "now() + interval '1 day'")
    with engine():
        timed(lambda: claim(handler, Limits(), BATCH), 10)  # its statement is prepared then
        print(json.dumps(timed(lambda: claim(handler, Limits(), BATCH), rounds)))


def _insert(name: str, jobs: int, lanes: int, due: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        cursor.execute("TRUNCATE tailrace_jobs_job")
        cursor.execute(
            f"""
            INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at,
              attempt, claim_no, worker, isolate, progress_note, error, created_at,
              cancel_requested)
            SELECT %s, '', 'pending', 1, CASE WHEN %s > 0 THEN 'lane' || g %% %s ELSE '' END, {due},
              0, 0, '', false, '', '', now(), false
            FROM generate_series(1, %s) g""",
            [name, lanes, max(lanes, 1), jobs],
        )


def _fill(name: str, kind: str, jobs: int) -> None:
    from django.db import connections

    from tailrace.jobs.models import Queue

    _insert(name, jobs, LANES if kind == "ordered" else 0, "now() - interval '1 hour'")
    Queue.objects.filter(name=name).update(
        max_running=MAX_RUNNING if kind == "limited" else None,
        rate_limit=RATE if kind == "rate" else None,
    )
    connections.close_all()


def _work(name: str, seconds: int, barrier: Any, results: Any, left: Any) -> None:
    """Claim and settle until no batch for each claimer is left, or the time is over; what counts is
    the time up to the last settlement."""
    from tailrace.db.connections import engine
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.begin import begin
    from tailrace.jobs.engine.claiming.claim import claim
    from tailrace.jobs.engine.run.verdict import Verdict
    from tailrace.jobs.engine.settling.settle import settle
    from tailrace.jobs.runtime.states import State

    handler, settled, empty = registry.get(name), 0, 0
    with engine():
        limits = begin(handler)
        assert limits is not None  # noqa: S101
        for _ in range(WARM):
            settle([Verdict(job, State.COMPLETED) for job in claim(handler, limits, 1)])
        barrier.wait()
        began = time.monotonic()
        last = 0.0
        while left.value > barrier.parties * BATCH and time.monotonic() - began < seconds:
            jobs = claim(handler, limits, BATCH)
            done = len(settle([Verdict(job, State.COMPLETED) for job in jobs]))
            if not done:
                empty += 1
                continue
            settled, last = settled + done, time.monotonic() - began
            with left.get_lock():
                left.value -= done
        results.put((settled, empty, last))


if __name__ == "__main__":
    django.setup()
    {"claimers": claimers, "lanes": lanes}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
