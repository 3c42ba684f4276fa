"""The table of jobs is divided beside processes that use it, and put together again."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from tailrace.db.connections import LOCK_SECONDS
from tailrace.db.query import database_now, execute, query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.maintenance import history, prune
from tailrace.jobs.models import Job
from tests.kit import claimed, repeated, run_and_settle, wait_until
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

BEFORE = ("tailrace_jobs", "0027_queue_activity")

# As processes with the code of before write them: all in the one table.
OLD_INSERT = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
  claim_no, worker, isolate, progress_note, error, created_at, cancel_requested)
VALUES ('test.work', '', 'pending', 1, '', now(), 0, 0, '', false, '', '', now(), false)
ON CONFLICT DO NOTHING RETURNING id
"""
OLD_CLAIM = """
WITH candidate AS MATERIALIZED (
  SELECT id FROM tailrace_jobs_job WHERE handler = 'test.work' AND state = 'pending'
    AND priority = 1
  ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE tailrace_jobs_job j SET state = 'running', claim_no = claim_no + 1 FROM candidate c
  WHERE j.id = c.id
RETURNING j.id
"""
OLD_SETTLE = """
UPDATE tailrace_jobs_job SET state = 'completed', finished_at = now() WHERE id = %s
  AND state = 'running'
RETURNING id
"""


def migrate(target: tuple[str, str] | None = None, step: Callable[..., Any] | None = None) -> None:
    """Migrate to the target, by default to the newest; call `step` before and after each one."""
    executor = MigrationExecutor(connection, step)
    executor.migrate([target] if target else executor.loader.graph.leaf_nodes("jobs"))


@pytest.fixture
def _divided_again() -> Iterator[None]:
    yield
    migrate()


class OldWorker(threading.Thread):
    """Makes, claims and settles jobs as the code of before did, until `ended` is set. It waits
    for a lock no longer than the engine does."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.made: list[int] = []
        self.settled: list[int] = []
        self.longest = 0.0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with connections["default"].cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
                while not self.ended.is_set():
                    self.made += self._ids(cursor, OLD_INSERT)
                    for id in self._ids(cursor, OLD_CLAIM):  # none if another was faster
                        self.settled += self._ids(cursor, OLD_SETTLE, [id])
        except Exception as error:
            self.error = error
        finally:
            connections["default"].close()

    def _ids(self, cursor: Any, statement: str, params: list[int] | None = None) -> list[int]:
        began = time.monotonic()
        cursor.execute(statement, params)
        self.longest = max(self.longest, time.monotonic() - began)
        return [id for (id,) in cursor.fetchall()]

    def goes_on(self, more: int = 20) -> None:
        count = len(self.settled)
        wait_until(lambda: self.error or len(self.settled) >= count + more, 60)
        assert self.error is None


@pytest.mark.usefixtures("_divided_again")
def test_it_goes_there_and_back_beside_an_old_worker(clock) -> None:
    kept = enqueue(Working)
    run_and_settle(claimed("test.work"))
    assert query("SELECT count(*) FROM tailrace_jobs_live") == [(0,)]
    migrate(BEFORE)
    assert query("SELECT relkind FROM pg_class WHERE relname = 'tailrace_jobs_job'") == [("r",)]
    assert query("SELECT id FROM tailrace_jobs_job") == [(kept,)]

    worker = OldWorker()
    worker.start()
    try:
        worker.goes_on()
        migrate()
        worker.goes_on()
    finally:
        worker.ended.set()
        worker.join(60)
    assert worker.made == worker.settled == sorted(set(worker.made))
    assert query("SELECT count(*) FROM tailrace_jobs_live") == [(len(worker.made) + 1,)]
    assert enqueue(Working) == max(worker.made) + 1
    clock.step(3600)
    assert history.move() == len(worker.made) + 1
    assert Job.objects.count() == len(worker.made) + 2


@pytest.mark.usefixtures("_divided_again")
def test_a_table_that_somebody_holds_stays_as_it_was(clock) -> None:
    migrate(BEFORE)
    holder = connections.create_connection("default")
    try:
        with holder.cursor() as cursor:
            cursor.execute("BEGIN; SELECT count(*) FROM tailrace_jobs_job")
            with pytest.raises(Exception, match="lock timeout"):
                migrate()
            cursor.execute("ROLLBACK")
    finally:
        holder.close()
    assert query("SELECT relkind FROM pg_class WHERE relname = 'tailrace_jobs_job'") == [("r",)]
    migrate()
    assert query("SELECT relkind FROM pg_class WHERE relname = 'tailrace_jobs_job'") == [("p",)]


def work() -> None:
    """Claim, run and settle as the new code does."""
    if jobs := claimed("test.work"):
        run_and_settle(jobs)


LIVE, DAYS = 500, 4
"""Jobs that are pending before the change, and the days on which the others ended."""
# The first of the days has few, for the test that it is dropped.
FILL = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
  claim_no, worker, isolate, progress_note, error, created_at, started_at, finished_at,
  cancel_requested)
SELECT 'test.work', '', state, 1, '', at, 1, 1, 'host:1:12345678', false, '', '', at, at,
  CASE WHEN state <> 'pending' THEN at END, false
FROM (
  SELECT CASE WHEN g <= %(live)s THEN 'pending' WHEN g %% 100 = 0 THEN 'failed'
    WHEN g %% 50 = 1 THEN 'cancelled' ELSE 'completed' END AS state,
    %(today)s::timestamptz - interval '12 hours'
      - make_interval(days => CASE WHEN g %% 20 = 0 THEN 3 ELSE g %% 3 END) AS at
  FROM generate_series(1, %(rows)s) g) job
"""
# What is not to change of those that had ended.
SUM = """
SELECT count(*), count(DISTINCT id),
  sum(hashtextextended(concat_ws(' ', id, state, finished_at, due_at, worker), 0)::numeric)
FROM tailrace_jobs_job WHERE id BETWEEN %(first)s AND %(last)s
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.usefixtures("_divided_again")
def test_many_rows_go_there_and_back_beside_old_workers(rows: int, settings) -> None:
    """Nobody waits for a lock longer than the engine does, and no row is lost or there twice."""
    settings.JOBS_RETENTION_DAYS, settings.JOBS_FAILED_RETENTION_DAYS = 30, 90
    migrate(BEFORE)
    today = database_now().date()
    execute(FILL, rows=rows + LIVE, live=LIVE, today=f"{today} 00:00Z")
    [(first, last)] = query(
        "SELECT min(id), max(id) FROM tailrace_jobs_job WHERE state <> 'pending'"
    )
    before = query(SUM, first=first, last=last)
    assert before[0][:2] == (rows, rows)
    live = [id for (id,) in query("SELECT id FROM tailrace_jobs_job WHERE state = 'pending'")]

    workers = [OldWorker(), OldWorker()]

    def go_on(action: str = "apply_success", *_args: Any) -> None:
        if action.endswith("_success"):
            for worker in workers:
                worker.goes_on(5)

    def report(what: str, began: float) -> None:
        longest = max(worker.longest for worker in workers)
        sys.stderr.write(
            f"{rows:,} rows, {what}: {time.monotonic() - began:.1f} s, the longest statement of"
            f" a worker {longest:.2f} s, {sum(len(worker.settled) for worker in workers):,} jobs\n"
        )
        for worker in workers:
            worker.longest = 0.0

    for worker in workers:
        worker.start()
    try:
        go_on()
        began = time.monotonic()
        migrate(step=go_on)
        report("there", began)
        assert query(SUM, first=first, last=last) == before

        began, failed = time.monotonic(), rows // 100
        with repeated(work, 0.05):
            moved = 0
            while count := history.move():
                moved += count
                go_on()
        report("to their days", began)
        assert moved == rows - failed
        assert query(SUM, first=first, last=last) == before
        ended = [today - timedelta(days=number + 1) for number in range(DAYS)]
        places = query("SELECT tableoid::regclass::text, count(*) FROM tailrace_jobs_job"
                       f" WHERE id BETWEEN {first} AND {last} GROUP BY 1")  # fmt: skip
        assert {name for name, _count in places} == {
            "tailrace_jobs_live", *map(history.partition, ended)
        }  # fmt: skip
        assert dict(places)["tailrace_jobs_live"] == failed
        assert not query(
            "SELECT FROM tailrace_jobs_job WHERE done_on <> (finished_at AT TIME ZONE 'UTC')::date"
        )

        settings.JOBS_RETENTION_DAYS = DAYS - 1
        [(dropped,)] = query(f"SELECT count(*) FROM {history.partition(ended[-1])}")
        assert dropped == dict(places)[history.partition(ended[-1])] > 0
        prune.prune()
        assert ended[-1] not in history.days()
        kept = query(SUM, first=first, last=last)
        assert kept[0][:2] == (rows - dropped, rows - dropped)

        go_on()
        began = time.monotonic()
        migrate(BEFORE, go_on)
        report("back", began)
        assert query("SELECT relkind FROM pg_class WHERE relname = 'tailrace_jobs_job'") == [("r",)]
        assert query(SUM, first=first, last=last) == kept
    finally:
        for worker in workers:
            worker.ended.set()
        for worker in workers:
            worker.join(60)
    assert [worker.error for worker in workers] == [None, None]
    settled = [id for worker in workers for id in worker.settled]
    assert len(settled) == len(set(settled))
    made = [id for worker in workers for id in worker.made]
    assert query("SELECT count(*), count(DISTINCT id), sum(id) FROM tailrace_jobs_job"
                 " WHERE id < %(first)s OR id > %(last)s", first=first, last=last) == [
        (len(made) + LIVE, len(made) + LIVE, sum(made) + sum(live))
    ]  # fmt: skip
