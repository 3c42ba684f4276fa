"""A plan that was made while the tables were empty reads no more rows when they have grown."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections

from tailrace.db.connections import ENGINE, atomic, engine
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim
from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt
from tailrace.jobs.runtime.states import State
from tests.kit import claimed
from tests.sandbox.handlers import Fair

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 6000
FILL = f"""
INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      lease_until, finished_at, cancel_requested)
SELECT (ARRAY['test.work', 'test.fair', 'test.ordered'])[1 + g % 3], '', '{{}}', state, 1,
       CASE WHEN g % 3 > 0 THEN state || g % 97 ELSE '' END, now(), 1, 1, 'another', false, '',
       '', now(), CASE state WHEN 'running' THEN now() + interval '1 hour' END,
       CASE state WHEN 'completed' THEN now() END, false
FROM generate_series(1, {ROWS}) g, LATERAL (
  SELECT (ARRAY['completed', 'pending', 'running'])[1 + g % 11 % 3] AS state) s
"""
_READ = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables
WHERE relname LIKE 'tailrace_jobs_%%' AND relname NOT LIKE 'tailrace_jobs_queue%%'
"""

Batch = list[ClaimedJob]


def complete(jobs: Batch) -> None:
    settle.settle([Verdict(job, State.COMPLETED) for job in jobs])


def settle_in_many_ways(jobs: Batch) -> None:
    retried = Verdict(jobs[0], State.PENDING, attempt=Attempt.Outcome.RETRIED, delay=9000.0)
    settle.settle([retried, *(Verdict(job, State.COMPLETED, result="1") for job in jobs[1:])])


def look(jobs: Batch) -> None:
    jobs[0].progress(1)
    jobs[0].check_cancelled()


STEPS: dict[str, Callable[[Batch], Any]] = {
    "renew": renew,
    "renew one": lambda jobs: renew(jobs[:1]),
    "look": look,
    "release": lambda jobs: dependents.release([job.id for job in jobs]),
    "complete": complete,
    "settle": settle_in_many_ways,
}


def batch(name: str) -> Batch:
    jobs = claimed(name, 5)
    assert len(jobs) == 5
    return jobs


def rows_read(work: Callable[[], Any]) -> int:
    """Return how many rows of jobs the engine's connection reads for this."""
    with atomic():
        [(before,)] = query(_READ)
        work()
        [(after,)] = query(_READ)
    return int(after - before)


@pytest.mark.parametrize("analysed", [False, True], ids=["no statistics", "analysed empty"])
@pytest.mark.parametrize(
    ("name", "step"),
    [("test.fair", "renew"), ("test.ordered", "renew"), *(("test.work", step) for step in STEPS)],
)
def test_a_plan_of_an_empty_table_stays_good(name: str, step: str, analysed: bool) -> None:
    if analysed:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE tailrace_jobs_job, tailrace_jobs_attempt")
    for number in range(8 * 5):
        enqueue(name, {}, lane=f"a{number}" if name != "test.work" else "")
    with engine():
        for _ in range(8):  # the server keeps the plan from the sixth time on
            STEPS[step](batch(name))
    live = connections[ENGINE].connection
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    enqueue_many("test.work", [{}] * 5)
    with engine():
        assert rows_read(lambda: STEPS[step](batch(name))) < ROWS / 20
    assert connections[ENGINE].connection is live


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_a_claim_is_planned_once_per_connection(name: str) -> None:
    with engine():
        for _ in range(8):
            enqueue(name, {}, lane="a" if name != "test.work" else "")
            complete(claimed(name))
        plans = query(
            """SELECT generic_plans > 0, custom_plans FROM pg_prepared_statements
               WHERE statement LIKE '%%lease_until = %%' AND statement LIKE '%%candidate%%'"""
        )
    assert plans == [(True, 0)]


def test_a_claim_by_places_of_an_empty_table_stays_good(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "per_destination", 3)
    handler, in_use = registry.get(Fair.name), {f"pending{number}": 3 for number in range(20)}
    claim_five = partial(claim.claim, handler, claim.Limits(), 5, in_use)
    for number in range(8 * 5):
        enqueue(Fair, {}, lane=f"a{number}")
    with engine():
        for _ in range(8):
            complete(claim_five())
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    with engine():
        assert rows_read(claim_five) < ROWS / 20


def test_a_head_is_looked_up_by_lane_where_the_statistics_know_of_one_lane() -> None:
    enqueue_many("test.ordered", [{"lane": "a"}] * 2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tailrace_jobs_job")
    with engine():
        for _ in range(8):
            complete(claimed("test.ordered"))
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    with engine():
        assert rows_read(lambda: batch("test.ordered")) < ROWS / 20
