"""Measure inside a process of Tailrace what jobs cost the database:
`python -m bench.jobs.inside.inside_storage NAME …` prints JSON. The statements are the engine's
own, on its own connection, and commit."""

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import django

HANDLER, BATCH = "bench.plain", 100
_KINDS = """
SELECT "resource_manager/record_type", count, combined_size
FROM pg_get_wal_stats(%(start)s::pg_lsn, %(end)s::pg_lsn, true)
WHERE count > 0 ORDER BY combined_size DESC LIMIT 10
"""
_COUNTS = """
SELECT n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, pg_table_size(relid),
       pg_indexes_size(relid)
FROM pg_stat_user_tables WHERE relname = 'tailrace_jobs_live'
"""


def main() -> None:
    """Run the function of that name with the rest as integers; print what it returns."""
    django.setup()
    functions: dict[str, Callable[..., Any]] = {
        each.__name__: each for each in (fill, rates, wal, retention, lanes, heartbeat)
    }
    print(json.dumps(functions[sys.argv[1]](*map(int, sys.argv[2:]))))


def fill(finished: int, days_ago: int = 1) -> float:
    """Insert that many jobs in bulk that finished on one day; return the seconds that it took."""
    from tailrace.db.query import database_now
    from tailrace.jobs.engine.maintenance.pruning import history

    day = database_now().date() - timedelta(days=days_ago)
    history.make_partitions(iter([day]))
    return _insert(HANDLER, "completed", finished, f"'{day} 12:00Z'::timestamptz", done_on=day)


def _insert(
    handler: str, state: str, count: int, at: str, lane: str = "''", done_on: date | None = None
) -> float:
    from django.db import connection

    began = time.perf_counter()
    done = f"{at} - g * interval '1 ms'" if done_on else "NULL"
    day = f"'{done_on}'::date" if done_on else "NULL::date"
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        for start in range(0, count, 1_000_000):
            cursor.execute(
                f"""INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority,
                      lane, due_at, attempt, claim_no, worker, isolate, progress_note, error,
                      created_at, started_at, finished_at, cancel_requested, done_on)
                    SELECT '{handler}', nextval('tailrace_events_event_id_seq'), '', '{state}', 1,
                      {lane}, {at}, 1, 1, 'host:1:12345678', false, '', '', {at}, {done}, {done},
                      false, {day}
                    FROM generate_series(1, {min(1_000_000, count - start)}) g"""
            )
        cursor.execute("CHECKPOINT")
        cursor.execute("RESET synchronous_commit")
    return time.perf_counter() - began


def _claimed(count: int = BATCH) -> list[Any]:
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.claim import Limits, claim

    return claim(registry.get(HANDLER), Limits(), count)


def _settle(jobs: list[Any]) -> None:
    from tailrace.jobs.engine.run.verdict import Verdict
    from tailrace.jobs.engine.settling.settle import settle
    from tailrace.jobs.runtime.states import State

    settle([Verdict(job, State.COMPLETED) for job in jobs])


def _enqueue(count: int = BATCH) -> None:
    from tailrace.jobs.enqueue import enqueue_many

    enqueue_many(HANDLER, [{}] * count)


def rates(batches: int) -> None:
    """For each line that is read, print the jobs per second that are claimed and settled by 100, so
    many batches one after the other."""
    from tailrace.db.connections import engine

    with engine():
        for _line in sys.stdin:
            for _ in range(batches):
                _enqueue()
            began = time.perf_counter()
            for _ in range(batches):
                _settle(_claimed())
            print(batches * BATCH / (time.perf_counter() - began), flush=True)


def wal(batches: int) -> dict[str, Any]:
    """Return the bytes of WAL per job of each step: the median of the batches, which leaves out
    images of pages after a checkpoint and what others write; and the largest kinds of records."""
    from django.db import DatabaseError, connection

    from tailrace.db.connections import engine
    from tailrace.db.query import query

    steps: dict[str, list[float]] = {"insert": [], "claim": [], "settle": []}
    jobs: list[Any] = []
    works: dict[str, Callable[[], Any]] = {
        "insert": _enqueue,
        "claim": lambda: jobs.__setitem__(slice(None), _claimed()),
        "settle": lambda: _settle(jobs),
    }
    start = _position()
    with engine():
        for _ in range(batches):
            for name, work in works.items():
                before = _position()
                work()
                steps[name].append((_position() - before) / BATCH)
    end = _position()
    result: dict[str, Any] = {name: statistics.median(sizes) for name, sizes in steps.items()}
    result["mean of all"] = (end - start) / BATCH / batches
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
        kinds = query(_KINDS, start=_name(start), end=_name(end))
    except DatabaseError:  # the extension is not installed, or is for others
        kinds = []
    result["kinds"] = [
        [kind, float(count) / BATCH / batches, float(size) / BATCH / batches]
        for kind, count, size in kinds
    ]
    return result


def _position() -> int:
    from tailrace.db.query import query

    [(position,)] = query("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
    return int(position)


def _name(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


VACUUM_SECONDS = 120


def _wait_for_vacuum() -> None:
    """Wait until no vacuum works here: of rows just inserted it holds a drop up, and a day past its
    retention was vacuumed long ago."""
    from tailrace.db.query import query

    until = time.monotonic() + VACUUM_SECONDS
    while query("SELECT 1 FROM pg_stat_progress_vacuum WHERE datname = current_database()"):
        if time.monotonic() > until:
            raise SystemExit(f"bench: a vacuum works for more than {VACUUM_SECONDS} s")
        time.sleep(0.5)


def retention(count: int) -> dict[str, float]:
    """Make so many jobs past their retention; return the seconds until none is left, and what is
    left of the table."""
    from datetime import timedelta

    from tailrace.db.query import database_now, query
    from tailrace.jobs.engine.maintenance.pruning import history, prune

    def counts() -> tuple[int, int]:
        query("SELECT pg_stat_force_next_flush()::text")
        query("SELECT pg_stat_clear_snapshot()::text")
        [(_live, dead, _updated, _hot, heap, indexes)] = query(_COUNTS)
        return dead, heap + indexes

    fill(count, days_ago=400)
    _wait_for_vacuum()
    dead_before, _size = counts()
    began = time.perf_counter()
    while history.days()[0] < database_now().date() - timedelta(days=399):
        prune.prune()
    seconds = time.perf_counter() - began
    past = "SELECT count(*) FROM tailrace_jobs_job WHERE done_on < now() - interval '399 days'"
    assert query(past) == [(0,)]  # noqa: S101
    dead, size = counts()  # fewer than before if a vacuum came by
    return {"seconds": seconds, "dead": max(dead - dead_before, 0), "bytes": size}


def lanes(count: int, rounds: int) -> dict[str, float]:
    """Let that many lanes wait for jobs that are due tomorrow; return the median milliseconds of a
    claim of each kind."""
    from tailrace.db.connections import engine
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.claim import Limits, claim

    medians = {}
    for name in ("bench.fair", "bench.ordered"):
        _insert(name, "pending", count, "now() + interval '1 day'", "'lane' || g")
        handler, times = registry.get(name), []
        with engine():
            for _ in range(rounds):
                began = time.perf_counter()
                assert not claim(handler, Limits(), 10)  # noqa: S101
                times.append((time.perf_counter() - began) * 1000)
        medians[name] = statistics.median(times)
    return medians


def heartbeat(rounds: int) -> dict[str, float]:
    """Renew the lease of one long job, and those of a claim of 100; return the bytes of WAL per
    job, and the share of the first's renewals that were HOT."""
    from tailrace.db.connections import engine
    from tailrace.db.query import query
    from tailrace.jobs.engine.leases.renew import renew

    def renewed(jobs: list[Any]) -> float:
        sizes = []
        for _ in range(rounds):
            before = _position()
            assert renew(jobs) == len(jobs)  # noqa: S101
            sizes.append((_position() - before) / len(jobs))
        return statistics.median(sizes)

    def updates() -> tuple[int, int]:
        query("SELECT pg_stat_force_next_flush()::text")
        query("SELECT pg_stat_clear_snapshot()::text")
        [(_live, _dead, updated, hot, _heap, _indexes)] = query(_COUNTS)
        return updated, hot

    with engine():
        _enqueue(BATCH + 1)
        one, many = _claimed(1), _claimed()
        before = updates()
        alone = renewed(one)
        after = updates()
        return {
            "one": alone,
            "many": renewed(many),
            "hot": (after[1] - before[1]) / max(after[0] - before[0], 1),
        }


if __name__ == "__main__":
    main()
