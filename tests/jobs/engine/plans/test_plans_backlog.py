"""The plans where nearly every job is pending: a planner is then tempted to walk the table."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Queue
from tailrace.jobs.runtime.invariant import Invariant, all_invariants
from tests.jobs.engine.plans.pages_read import explain, frugal
from tests.kit import claimed

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

BIG = {"tailrace_jobs_job"}
BACKLOG = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
                      claim_no, worker, isolate, progress_note, error, created_at, cancel_requested)
SELECT (ARRAY['test.work', 'test.fair', 'test.ordered'])[1 + g % 3], '', 'pending', 1,
       CASE WHEN g % 3 > 0 THEN 'lane' || g % 997 ELSE '' END, now() - interval '1 hour', 0, 0, '',
       false, '', '', now(), false
FROM generate_series(1, 150000) g
"""


@pytest.fixture(scope="module", autouse=True)
def _backlog(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            cursor.execute(BACKLOG)
            cursor.execute(
                "VACUUM (ANALYZE) tailrace_jobs_job, tailrace_events_event, tailrace_jobs_queue"
            )
        yield
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE tailrace_jobs_job, tailrace_jobs_attempt")
            cursor.execute("VACUUM (ANALYZE) tailrace_jobs_job")
        connection.close()


def test_a_tick_looks_at_queues_without_jobs_by_the_index() -> None:
    frugal(tick.tick, pages=14 * Queue.objects.count(), big=BIG)


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered", "test.other"])
def test_a_claim(name: str) -> None:
    frugal(lambda: claimed(name), pages=1500, big=BIG)


@pytest.mark.parametrize(
    "invariant", [rule for rule in all_invariants() if rule.every], ids=lambda rule: rule.name
)
def test_what_the_sweeper_looks_for(invariant: Invariant) -> None:
    if explain(invariant.find):
        frugal(invariant.find, pages=max(1500, 14 * Queue.objects.count()), big=BIG)
