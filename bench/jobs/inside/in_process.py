"""Measure inside a process of Tailrace: `python -m bench.jobs.inside.in_process NAME …`
prints JSON.

The benchmarks start it with the environment of their database and broker.
"""

import json
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import django


def main() -> None:
    """Run the function of that name with the rest as integers; print what it returns."""
    django.setup()
    print(json.dumps(globals()[sys.argv[1]](*map(int, sys.argv[2:]))))


def timed(work: Callable[[], Any], rounds: int) -> list[float]:
    """Milliseconds of each round."""
    durations = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        durations.append((time.perf_counter() - began) * 1000)
    return durations


BARE = """
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload,
                          occurred_at, recorded_at, actor, trace_parent, problem)
VALUES ('local', %s, 'bench.measured', 1, '', %s, now(), now(), '', '', '')
"""


def publish_one(rounds: int) -> dict[str, list[float]]:
    """One event per transaction, in turns, so that the noise of the machine meets all sides."""
    from django.conf import settings
    from django.db import connection, transaction

    from bench.app.event_types import Measured
    from bench.sides.delayed import delay_four
    from tailrace.events.publish import NewEvent, publish

    def bare() -> None:
        with connection.cursor() as cursor:
            cursor.execute(BARE, [uuid.uuid4().hex, '{"number":1}'])

    def bare_in_transaction() -> None:
        with transaction.atomic():
            bare()

    def ours() -> None:
        with transaction.atomic():
            publish(NewEvent(Measured, {"number": 1}))

    def delayed() -> None:
        with transaction.atomic():
            bare()
            delay_four()

    sides = {
        "bare INSERT, autocommit": bare,
        "bare INSERT in atomic()": bare_in_transaction,
        "publish, 4 jobs": ours,
        "INSERT and 4 delay_on_commit": delayed,
    }
    durations: dict[str, list[float]] = {name: [] for name in sides}
    for work in sides.values():
        timed(work, 20)
    for _ in range(10):
        for name, work in sides.items():
            durations[name] += timed(work, rounds // 10)
    settings.JOBS_WAKE = "inline"
    durations["publish, 4 jobs, JOBS_WAKE=inline"] = timed(ours, rounds)
    return durations


def publish_bulk(transactions: int) -> dict[str, list[float]]:
    """1,000 events per transaction."""
    from django.db import connection, transaction

    from bench.app.event_types import Measured
    from tailrace.events.publish import NewEvent, publish

    def bare() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(BARE, [(uuid.uuid4().hex, '{"number":1}') for _ in range(1000)])

    def ours() -> None:
        publish([NewEvent(Measured, {"number": number}) for number in range(1000)])

    timed(ours, 1)
    return {
        "publish, 4 jobs each": timed(ours, transactions),
        "bare INSERT, executemany": timed(bare, transactions),
    }


def scale(finished: int, pending: int, rounds: int) -> dict[str, float]:
    """Fill up to these numbers; return medians in ms of claims and settlements of 100, and more."""
    from django.db import connection

    from tailrace.db.connections import atomic, current, engine
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.claim import Limits, claim
    from tailrace.jobs.engine.maintenance.sweeping import sweep
    from tailrace.jobs.engine.maintenance.ticking import tick
    from tailrace.jobs.engine.run.verdict import Verdict
    from tailrace.jobs.engine.settling.settle import settle
    from tailrace.jobs.runtime.states import State

    def undone(work: Callable[[], Any], rounds: int) -> float:
        times = []
        for _ in range(rounds):
            with atomic():
                times += timed(work, 1)
                current().set_rollback(True)
        return statistics.median(times)

    def settlement() -> float:
        times = []
        for _ in range(rounds):
            with atomic():
                jobs = claim(handlers[0], Limits(), 100)
                verdicts = [Verdict(job, State.COMPLETED) for job in jobs]
                times += timed(lambda verdicts=verdicts: settle(verdicts), 1)  # type: ignore[misc]
                current().set_rollback(True)
        return statistics.median(times)

    names = ("bench.plain", "bench.fair", "bench.ordered")
    handlers = [registry.get(name) for name in names]
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        for handler in handlers:
            lane = "'lane' || g % 1000" if handler.in_lanes() else "''"
            _fill(cursor, handler.name, "pending", pending, lane)
        _fill(cursor, names[0], "completed", finished, "''")
        cursor.execute("CHECKPOINT")
        cursor.execute("RESET synchronous_commit")
    durations = {}
    with engine():  # as a drain does
        for name, handler in zip(("plain", "fair", "ordered"), handlers, strict=True):
            for size in (10, 100):
                work = lambda handler=handler, size=size: claim(handler, Limits(), size)  # noqa: E731
                undone(work, 3)
                durations[f"claim of {size}, {name}"] = undone(work, rounds)
        durations["settle 100"] = settlement()
    durations["tick"] = undone(tick.tick, rounds)
    durations["sweep"] = undone(sweep.sweep, 3)
    return durations


def _fill(cursor: Any, handler: str, state: str, wanted: int, lane: str) -> None:
    cursor.execute(
        "SELECT count(*) FROM tailrace_jobs_job WHERE handler = %s AND state = %s", [handler, state]
    )
    missing = wanted - cursor.fetchone()[0]
    cursor.execute(
        f"""
        INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane,
          due_at, attempt, claim_no, worker, isolate, progress_note, error, created_at, finished_at,
          cancel_requested)
        SELECT %(handler)s, nextval('tailrace_events_event_id_seq'), '', %(state)s, 1, {lane},
          now() - interval '1 hour', 0, 0, '', false, '', '', now(),
          CASE %(state)s WHEN 'completed' THEN now() END, false
        FROM generate_series(1, %(missing)s) g""".replace("g % 1000", "g %% 1000"),
        {"handler": handler, "state": state, "missing": missing},
    )


def observed(rounds: int, jobs: int) -> dict[str, list[float]]:
    """Milliseconds of each claim that is run, settled and recorded: bare, counted, and with spans,
    in turns."""
    from collections import Counter

    from django.db import connection

    from tailrace.db.connections import engine
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.claim import Limits, claim
    from tailrace.jobs.engine.counters import totals
    from tailrace.jobs.engine.counters.totals import record
    from tailrace.jobs.engine.run.handler_call import run_alone
    from tailrace.jobs.engine.settling.settle import settle
    from tailrace.net import tracing

    handler = registry.get("bench.plain")
    with connection.cursor() as cursor:
        _fill(cursor, handler.name, "pending", 3 * (rounds + 20) * jobs, "''")
        cursor.execute("VACUUM ANALYZE tailrace_jobs_job")

    def drain(counted: bool, traced: bool) -> None:
        tracing.on = traced
        claimed = claim(handler, Limits(), jobs)
        assert len(claimed) == jobs  # noqa: S101
        verdicts = [run_alone(job, handler.handle) for job in claimed]
        states = settle(verdicts)
        for verdict in verdicts if counted else ():
            totals.settled(verdict, states[verdict.job.id])
        record(handler.name, Counter(states.values()), 0.01)

    sides = {
        "neither": lambda: drain(False, False),
        "counted": lambda: drain(True, False),
        "counted and traced": lambda: drain(True, True),
    }
    durations: dict[str, list[float]] = {name: [] for name in sides}
    with engine():
        for work in sides.values():
            timed(work, 20)
        for _ in range(rounds):
            for name, work in sides.items():
                durations[name] += timed(work, 1)
    tracing.shut_down()
    return durations


def fill(count: int, seconds_ahead: int = 0) -> int:
    """Make that many pending jobs of bench.effect_a, due together; wake its queue."""
    from django.db import connection

    from tailrace.jobs.engine.waking import wake

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        cursor.execute(
            """
            INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane,
              due_at, attempt, claim_no, worker, isolate, progress_note, error, created_at,
              cancel_requested)
            SELECT 'bench.effect_a', nextval('tailrace_events_event_id_seq'), '', 'pending', 1, '',
              now() + %s * interval '1 second', 0, 0, '', false, '', '', now(), false
            FROM generate_series(1, %s)""",
            [seconds_ahead, count],
        )
    wake.wake(["bench.effect_a"])
    return count


def steady(events: int, per_second: int) -> list[tuple[int, float]]:
    """Publish events of two queues at that rate; return ids and times of the commits."""
    from django.db import connection, transaction

    from bench.app.event_types import Aside
    from tailrace.events.publish import NewEvent, publish

    committed = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    start = time.monotonic()
    for number in range(events):
        with transaction.atomic():
            event = publish(NewEvent(Aside, {"number": number}))[0]
        committed.append((event.id, time.monotonic()))
        time.sleep(max(start + (number + 1) / per_second - time.monotonic(), 0))
    return committed


if __name__ == "__main__":
    main()
