"""The table of jobs is divided beside processes that use it, and put together again."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from db.query import query
from jobs.enqueue import enqueue
from jobs.maintenance import history
from jobs.models import Job
from tests.kit import claimed, run_and_settle, wait_until
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

BEFORE, AFTER = ("jobs", "0027_queue_activity"), ("jobs", "0030_history_apart")

# As processes with the code of before write them: all in the one table.
OLD_INSERT = """
INSERT INTO jobs_job (handler, routing_key, state, priority, lane, due_at, attempt, claim_no,
  worker, isolate, progress_note, error, created_at, cancel_requested)
VALUES ('test.work', '', 'pending', 1, '', now(), 0, 0, '', false, '', '', now(), false)
ON CONFLICT DO NOTHING RETURNING id
"""
OLD_CLAIM = """
WITH candidate AS MATERIALIZED (
  SELECT id FROM jobs_job WHERE handler = 'test.work' AND state = 'pending' AND priority = 1
  ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE jobs_job j SET state = 'running', claim_no = claim_no + 1 FROM candidate c WHERE j.id = c.id
RETURNING j.id
"""
OLD_SETTLE = """
UPDATE jobs_job SET state = 'completed', finished_at = now() WHERE id = %s AND state = 'running'
RETURNING id
"""


def migrate(target: tuple[str, str]) -> None:
    MigrationExecutor(connection).migrate([target])


@pytest.fixture
def _divided_again() -> Iterator[None]:
    yield
    migrate(AFTER)


class OldWorker(threading.Thread):
    """Makes, claims and settles jobs as the code of before did, until it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.made: list[int] = []
        self.settled: list[int] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with connections["default"].cursor() as cursor:
                while not self.ended.is_set():
                    for statement, ids in ((OLD_INSERT, self.made), (OLD_CLAIM, [])):
                        cursor.execute(statement)
                        [(id,)] = cursor.fetchall()
                        ids.append(id)
                    cursor.execute(OLD_SETTLE, [id])
                    [(id,)] = cursor.fetchall()
                    self.settled.append(id)
        except Exception as error:
            self.error = error
        finally:
            connections["default"].close()

    def goes_on(self, more: int = 20) -> None:
        count = len(self.settled)
        wait_until(lambda: self.error or len(self.settled) >= count + more, 60)
        assert self.error is None


@pytest.mark.usefixtures("_divided_again")
def test_it_goes_there_and_back_beside_an_old_worker(clock) -> None:
    kept = enqueue(Working)
    run_and_settle(claimed("test.work"))
    clock.step(3600)
    assert history.move() == 1
    migrate(BEFORE)
    assert query("SELECT relkind FROM pg_class WHERE relname = 'jobs_job'") == [("r",)]
    assert query("SELECT id FROM jobs_job") == [(kept,)]

    worker = OldWorker()
    worker.start()
    try:
        worker.goes_on()
        migrate(AFTER)
        worker.goes_on()
    finally:
        worker.ended.set()
        worker.join(60)
    assert worker.made == worker.settled == sorted(set(worker.made))
    assert query("SELECT count(*) FROM jobs_live") == [(len(worker.made) + 1,)]
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
            cursor.execute("BEGIN; SELECT count(*) FROM jobs_job")
            with pytest.raises(Exception, match="lock timeout"):
                migrate(AFTER)
            cursor.execute("ROLLBACK")
    finally:
        holder.close()
    assert query("SELECT relkind FROM pg_class WHERE relname = 'jobs_job'") == [("r",)]
    migrate(AFTER)
    assert query("SELECT relkind FROM pg_class WHERE relname = 'jobs_job'") == [("p",)]
