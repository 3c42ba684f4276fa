"""What runs all the time, explain and fsck cost what the live rows cost, not the history.

1,000,000 finished jobs, most of them in the partitions of 26 days, and 100,000 pending ones; every
statement that a piece of the engine executes is executed again under EXPLAIN, which says how it
went about it and how many pages it read.
"""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import database_now
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim
from tailrace.jobs.engine.maintenance import backfill, sync_declared
from tailrace.jobs.engine.maintenance.pruning import history, prune
from tailrace.jobs.engine.maintenance.sweeping import row_invariant
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job, Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.platform.inspection.explain.explanation import explain as explain_job
from tailrace.jobs.platform.inspection.metrics import reading
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.storage import past_retention
from tailrace.jobs.platform.invariants.events import EventHasJobs
from tailrace.jobs.runtime.invariant import Invariant, all_invariants
from tailrace.jobs.runtime.states import State
from tests import database_reset
from tests.kit import change_queue, claimed
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Debounced, Fair, Log, Working

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

FINISHED, PENDING, EVENTS = 1_000_000, 100_000, 250_000
BIG = {"tailrace_jobs_job", "tailrace_events_event", "tailrace_jobs_attempt"}
PAGES = 4000
"""Pages of 8 KB that one statement may touch. The table of jobs alone has more than 20,000."""

FILL = f"""
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload, actor,
                          trace_parent, problem, occurred_at, recorded_at)
SELECT 's', g::text, 'test.happened', 1, 'who' || g % 1000, '{{}}', '', '', '', at, at
FROM generate_series(1, {EVENTS}) g,
  LATERAL (SELECT now() - interval '25 days' + g * interval '8 seconds' AS at) t;

INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      started_at, finished_at, cancel_requested, done_on)
SELECT (ARRAY['test.log', 'test.keyed', 'test.family', 'test.debounced'])[1 + g % 4], e, '',
       CASE WHEN g % 500 = 0 THEN 'failed' ELSE 'completed' END, 1,
       CASE WHEN g % 4 = 2 THEN 'who' || g % 1000 ELSE '' END, at, 1, 1, 'w', false, '', '',
       at, at, at, false,
       CASE WHEN g % 500 > 0 AND g % 20 > 0 THEN (at AT TIME ZONE 'UTC')::date END
FROM generate_series(0, {FINISHED - 1}) g, LATERAL (
  SELECT (SELECT min(id) FROM tailrace_events_event) + g / 4 AS e,
         now() - interval '25 days' + g * interval '2 seconds' AS at) t;

INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      cancel_requested)
SELECT (ARRAY['test.work', 'test.work', 'test.work', 'test.fair', 'test.ordered'])[1 + g % 5], '',
       '{{}}', 'pending', g % 4, CASE WHEN g % 5 > 2 THEN 'lane' || g % 997 ELSE '' END,
       now() - (g % 5000 - 500) * interval '1 second', 0, 0, '', false, '', '', now(), false
FROM generate_series(1, {PENDING}) g;

INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      after_id, lease_until, cancel_requested)
SELECT 'test.other', '', '{{}}', CASE WHEN g % 2 = 0 THEN 'waiting' ELSE 'running' END, 1, '',
       now(), 1, 1, 'w', false, '', '', now(),
       CASE WHEN g % 2 = 0 THEN (SELECT max(id) FROM tailrace_jobs_job) END,
       now() + interval '1 day' * (g % 3 + 1), false
FROM generate_series(1, 1000) g;

INSERT INTO tailrace_jobs_attempt (job_id, claim_no, finished_at, outcome, error_class, message,
                          traceback, worker)
SELECT (SELECT min(id) FROM tailrace_jobs_job) + g * 4, 7, now(), 'retried', '', '', '', ''
FROM generate_series(1, 100000) g;
"""


@pytest.fixture(scope="module")
def _history(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = off")
            today = database_now().date()
            history.make_partitions(today - timedelta(days=number) for number in range(-1, 27))
            cursor.execute(FILL)
            cursor.execute("RESET synchronous_commit")
            cursor.execute(
                "VACUUM (ANALYZE) tailrace_jobs_job, tailrace_events_event, tailrace_jobs_attempt,"
                " tailrace_jobs_queue"
            )
        yield
        database_reset.restore()
        with connection.cursor() as cursor:
            cursor.execute(
                "VACUUM (ANALYZE) tailrace_jobs_job, tailrace_events_event, tailrace_jobs_attempt"
            )
        connection.close()


@pytest.fixture(autouse=True)
def _big(_history: None, db: None) -> None:
    """All tests of this file have the history."""


def explain(work: Callable[[], Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the statements that `work` executes, each with its plan as it was executed."""
    executed: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        executed.extend((statement.strip(), params) for statement in sql.split(";"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        point = transaction.savepoint()
        work()
        transaction.savepoint_rollback(point)
    plans = []
    for sql, params in executed:
        if sql.split(None, 1)[0] not in ("SELECT", "WITH", "UPDATE", "INSERT", "DELETE"):
            continue
        point = transaction.savepoint()
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + sql, params)
            answer = cursor.fetchone()[0]
        transaction.savepoint_rollback(point)
        answer = json.loads(answer) if isinstance(answer, str) else answer
        plans.append((sql, answer[0]["Plan"]))
    return plans


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def outline(sql: str, plan: dict[str, Any]) -> str:
    lines = [
        f"{node['Node Type']} {node.get('Index Name') or node.get('Relation Name', '')}"
        f" rows={node['Actual Rows']}x{node['Actual Loops']} pages={pages_of(node)}"
        for node in nodes(plan)
    ]
    return "\n".join([sql, *lines])


def pages_of(node: dict[str, Any]) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def table_of(name: str) -> str:
    """Return the table that a relation is, or is a partition of."""
    return (
        "tailrace_jobs_job"
        if name == "tailrace_jobs_live" or name.startswith(history.PREFIX)
        else name
    )


def frugal(work: Callable[[], Any], pages: int = PAGES, big: set[str] = BIG) -> int:
    """Assert that no statement of `work` walks over a big table; return how many there are."""
    plans = explain(work)
    assert plans, "no statement was executed"
    for sql, plan in plans:
        walked = [
            node["Relation Name"]
            for node in nodes(plan)
            if node["Node Type"] == "Seq Scan"
            and table_of(node["Relation Name"]) in big
            # A day of one page is not worth an index.
            and pages_of(node) > node["Actual Loops"]
        ]
        assert not walked, f"walks over {walked}: {outline(sql, plan)}"
        assert pages_of(plan) <= pages, outline(sql, plan)
    return len(plans)


# These come first: they write nothing, and are measured where no test has left dead rows.


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered", "test.other"])
def test_explaining_a_live_job(name: str) -> None:
    live = Job.objects.filter(handler=name, state__in=["waiting", "pending", "running"])
    for job in (live.earliest("due_at", "id"), live.latest("due_at", "id")):
        frugal(lambda id=job.pk: explain_job(id), pages=2500)


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_explaining_a_job_under_limits(name: str) -> None:
    change_queue(name, max_running=900, rate_limit=800, tokens=800)
    job = Job.objects.pending().filter(handler=name).latest("due_at", "id")
    due = Job.objects.pending().filter(handler=name, due_at__lt=job.created_at).latest("due_at")
    # A preview of 800 jobs of a queue with lanes looks at the head of some hundred lanes.
    frugal(lambda: explain_job(due.pk), pages=12_000)


def test_explaining_a_finished_job() -> None:
    frugal(lambda: explain_job(Job.objects.filter(state="completed").earliest("id").pk), pages=200)


@pytest.mark.parametrize("table", ["tailrace_jobs_job", "tailrace_jobs_attempt"])
def test_a_batch_of_fsck_walks_along_the_primary_key(table: str, monkeypatch: Any) -> None:
    of_table = [
        rule
        for rule in all_invariants()
        if isinstance(rule, row_invariant.RowInvariant) and rule.table == table
    ]
    end_of_batch = row_invariant._end_of_batch

    def first_batch(table: str, start: int) -> int | None:
        return None if start else end_of_batch(table, 0)

    monkeypatch.setattr(row_invariant, "_end_of_batch", first_batch)
    # A row costs a few probes of the primary keys, one for each day of the history; of attempts,
    # each is a finding here.
    assert frugal(lambda: list(row_invariant.scan(of_table)), pages=200 * row_invariant.BATCH) == 4


@pytest.mark.parametrize(
    "other",
    [
        rule
        for rule in all_invariants()
        if rule.every is None and not isinstance(rule, row_invariant.RowInvariant)
    ],
    ids=lambda other: other.name,
)
def test_checks_of_more_than_rows_read_few_pages(other: Invariant) -> None:
    if isinstance(other, EventHasJobs):
        other.since = 3 * 86_400  # some 10,000 events
    frugal(lambda: list(other.find()), pages=130_000)  # 2,000 events, each sought in 27 days


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_a_claim(name: str) -> None:
    taken: list[Any] = []
    frugal(lambda: taken.extend(claimed(name)), pages=1500)
    assert len(taken) == 10


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_a_claim_under_limits(name: str) -> None:
    Queue.objects.filter(pk=name).update(max_running=5, rate_limit=100)
    frugal(lambda: claimed(name), pages=1500)


@pytest.mark.parametrize("places", [1, 3])
def test_a_claim_that_leaves_full_lanes_out(places: int, monkeypatch) -> None:
    monkeypatch.setattr(Fair, "per_destination", 3)
    in_use = {f"lane{number}": places for number in range(30)}
    taken: list[Any] = []
    handler = registry.get(Fair.name)
    frugal(lambda: taken.extend(claim.claim(handler, claim.Limits(), 10, in_use)), pages=1500)
    assert len(taken) == 10
    assert places == 1 or not in_use.keys() & {job.lane for job in taken}


def test_a_claim_of_one_lane(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "batch_sizes", lambda self: {"lane0": 5})
    taken: list[Any] = []
    frugal(lambda: taken.extend(claimed(Fair.name)), pages=1500)
    assert [job.lane for job in taken] == ["lane0"] * 5


def test_a_claim_where_nothing_is_due() -> None:
    frugal(lambda: claimed("test.log"), pages=200)


@pytest.mark.parametrize("state", [State.COMPLETED, State.PENDING, State.FAILED])
def test_settling(state: State) -> None:
    jobs = claimed("test.work")
    outcome = None if state == State.COMPLETED else Attempt.Outcome.RETRIED
    frugal(lambda: settle.settle([Verdict(job, state, attempt=outcome) for job in jobs]))


def test_settling_snoozes_of_jobs_snoozed_before() -> None:
    jobs = claimed("test.work")
    insert = """INSERT INTO tailrace_jobs_attempt (job_id, claim_no, outcome, finished_at,
                                          error_class, message, traceback, worker)
                SELECT id, claim_no - 1, 'snoozed', now(), '', '', '', '' FROM tailrace_jobs_job
                WHERE state = 'running' AND worker = %s"""
    with connection.cursor() as cursor:
        cursor.execute(insert, [jobs[0].worker])
    snoozed = Attempt.Outcome.SNOOZED
    frugal(lambda: settle.settle([Verdict(job, State.PENDING, attempt=snoozed) for job in jobs]))


def test_publishing() -> None:
    frugal(lambda: publish([NewEvent(Happened, {"who": "w", "tags": ["a", "b"]})] * 20))


def test_enqueueing() -> None:
    frugal(lambda: enqueue(Working, unique_key="k"), pages=300)


@pytest.mark.parametrize("merge", ["keep", "replace"])
def test_merging(merge: str, monkeypatch) -> None:
    monkeypatch.setattr(Working, "merge", merge)
    monkeypatch.setattr(Debounced, "merge", merge)
    enqueue(Working, unique_key="k")
    frugal(lambda: enqueue(Working, unique_key="k"), pages=300)
    publish(NewEvent(Happened, {"who": "w"}))
    frugal(lambda: publish([NewEvent(Happened, {"who": "w"})] * 20))


def test_a_tick_with_due_queues_everywhere() -> None:
    assert frugal(tick.tick, pages=3000) == 3


def test_an_empty_tick_costs_three_statements(django_assert_num_queries) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM tailrace_jobs_job WHERE state IN ('pending', 'running', 'waiting')"
        )
    with django_assert_num_queries(3):
        assert tick.tick() == 0


def test_rescuing() -> None:
    Job.objects.running().update(lease_until="2026-01-01T00:00Z")
    frugal(rescue.rescue, pages=30_000)  # it moves 500 jobs
    frugal(lambda: rescue.rescue(10))


@pytest.mark.parametrize(
    "invariant", [rule for rule in all_invariants() if rule.every], ids=lambda rule: rule.name
)
def test_what_the_sweeper_looks_for(invariant: Any) -> None:
    with CaptureQueriesContext(connection) as captured:
        invariant.find()
    if captured.captured_queries:
        frugal(invariant.find, pages=30_000)  # 500 parents, each sought in all days
    assert invariant.limit <= 10_000


def test_what_the_sweeper_looks_for_of_events_without_jobs(monkeypatch) -> None:
    monkeypatch.setattr(Log, "backfill", 86_400)
    frugal(backfill.handlers_behind)
    frugal(lambda: backfill.advance("test.log"), pages=200_000)
    Queue.objects.filter(pk="test.log").update(backfilled_xact=10**12, backfilled_to=0)
    frugal(backfill.handlers_behind, pages=500)  # those of the minutes that it asks for


def test_releasing_what_waits() -> None:
    parent = Job.objects.filter(state=State.WAITING).values_list("after_id", flat=True)[0]
    frugal(lambda: dependents.release([parent]), pages=30_000)  # of 500, each sought in all days


def test_operating() -> None:
    some = Job.objects.filter(handler="test.work", priority=0)
    pending = list(some.pending().values_list("id", flat=True)[:100])
    failed = list(Job.objects.failed().values_list("id", flat=True)[:50])
    assert len(pending) == 100
    assert failed
    frugal(lambda: cancel(pending[:50]))
    frugal(lambda: retry_now(pending[50:]))
    frugal(lambda: replay(failed))


def test_migrating_reads_the_unstarted_jobs_alone() -> None:
    frugal(sync_declared.sync, pages=6000)


def test_pruning(settings, monkeypatch) -> None:
    monkeypatch.setattr(prune, "SECONDS", 0.5)
    frugal(prune.prune, pages=40_000)  # nothing is old
    settings.JOBS_RETENTION_DAYS = 20
    # Batches of 2000 rows, each with its indexes; for so many probes the planner may rather read
    # the attempts, which are few here.
    frugal(prune.prune, pages=150_000, big={"tailrace_jobs_job", "tailrace_events_event"})


def test_the_numbers_of_the_overview() -> None:
    frugal(stats.queues, pages=250_000)
    # Of what is live, two thirds are pending: it is read from end to end, and no day is.
    frugal(stats.totals, pages=10_000, big=BIG - {"tailrace_jobs_job"})


def test_the_figures_of_metrics() -> None:
    frugal(reading.read, pages=250_000)


def test_jobs_past_their_retention() -> None:
    frugal(past_retention.most_overdue, pages=2500)
