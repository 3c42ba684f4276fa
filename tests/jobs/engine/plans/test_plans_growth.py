"""A claim reads few rows also where the statistics are those of an empty table."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.invariants import jobs
from tests.jobs.engine.plans.test_plans_backlog import BACKLOG
from tests.kit import claimed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

NAMES = ("test.work", "test.fair", "test.ordered")
HISTORY = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
                      claim_no, worker, isolate, progress_note, error, created_at, finished_at,
                      cancel_requested)
SELECT (ARRAY['test.work', 'test.fair', 'test.ordered'])[1 + g % 3], '', 'completed', 1,
       CASE WHEN g % 3 > 0 THEN 'lane' || g % 997 ELSE '' END, now() - interval '1 hour', 1, 1, '',
       false, '', '', now(), now(), false
FROM generate_series(1, 40000) g
"""


@pytest.fixture(autouse=True)
def _empty_statistics() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_jobs_live SET (autovacuum_enabled = off)")
        cursor.execute("TRUNCATE tailrace_jobs_job")
        cursor.execute("ANALYZE tailrace_jobs_job, tailrace_jobs_queue")
        yield
        cursor.execute("TRUNCATE tailrace_jobs_job")
        cursor.execute("ALTER TABLE tailrace_jobs_live RESET (autovacuum_enabled)")


def rows_read() -> tuple[int, int]:
    """Return the rows of jobs that this session has read lately: by walks and by indexes."""
    ((walked, by_index),) = query(
        """SELECT seq_tup_read, coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
           WHERE relname = 'tailrace_jobs_live'"""
    )
    return walked, by_index


@pytest.mark.parametrize("limit", [None, 900])
def test_claims_stay_index_walks_while_the_table_grows(limit: int | None) -> None:
    Queue.objects.update(max_running=limit)
    read: dict[str, tuple[int, int]] = {}
    with connections.engine():
        for name in NAMES:
            for _ in range(8):  # a statement that is prepared has its final plan now
                enqueue(name, lane="a")
                assert claimed(name)
                Job.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(HISTORY)
            cursor.execute(BACKLOG.replace("150000", "40000"))
        for name in NAMES:
            with connections.atomic():
                walked, by_index = rows_read()
                assert len(claimed(name)) == 10
                now_walked, now_by_index = rows_read()
                read[name] = now_walked - walked, now_by_index - by_index
    assert {name: walked for name, (walked, _) in read.items()} == dict.fromkeys(NAMES, 0)
    # A claim walks along 310 lanes at most, and reads up to three rows of each: by where the last
    # claim of this process has stopped.
    assert max(by_index for _, by_index in read.values()) < 1000, read


def test_migrating_reads_no_history() -> None:
    with connection.cursor() as cursor:
        cursor.execute(HISTORY)
    with connections.atomic():
        sync_declared.sync()
        assert sum(rows_read()) == 0


RUNNING = """
UPDATE tailrace_jobs_job SET state = 'running', lease_until = now() + interval '1 day',
  claim_no = 1, attempt = 1, worker = 'w', started_at = now(), finished_at = NULL
WHERE id <= (SELECT min(id) + 20000 FROM tailrace_jobs_job)
"""


@pytest.mark.parametrize("analysed", [False, True], ids=["no statistics", "all ran then"])
def test_a_rescue_reads_what_runs_and_no_history(analysed: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(HISTORY.replace("40000", "30000"))
        cursor.execute(RUNNING)
        if analysed:
            cursor.execute("ANALYZE tailrace_jobs_job")
        cursor.execute(HISTORY)
    for find in (rescue.rescue, jobs.LeaseHasNotEnded().find):
        with connections.atomic():
            walked, by_index = rows_read()
            assert not find()
            now_walked, now_by_index = rows_read()
        assert now_walked == walked
        assert now_by_index - by_index <= 20_001
