"""Workers with Celery's other pools run and settle jobs, and keep their connections."""

from pathlib import Path

import pytest
from django.db import connection

from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import Job
from tests import kept_sessions
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox.handlers import Working

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.slow
]  # fmt: skip

THREADS = 2
MOST = 2 * THREADS + 5
"""Two sessions for each thread, two for upkeep, and one each for wake-ups, leases and totals."""


def sessions() -> int:
    """Return how many sessions other processes have in the database of this test."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> ALL(%s)"
            " AND backend_type = 'client backend'",
            [list(kept_sessions.backends())],
        )
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_jobs_run_and_connections_stay_few(pool: str, process_env, tmp_path: Path) -> None:
    empty_broker()
    log = tmp_path / f"{pool}.log"
    done = Job.objects.filter(state="completed")
    with worker(
        process_env, ["test.work"], log=log, concurrency=THREADS, pool=pool, warm=False
    ) as running:
        for round_ in range(1, 6):
            enqueue_many(Working, [{}] * 20)
            wait_until(lambda number=round_: done.count() == 20 * number, 60)
            assert sessions() <= MOST
        assert running.stop() == 0
    wait_until(lambda: sessions() == 0, what="the worker's sessions end")
