"""What runs all the time, explain and fsck cost what the live rows cost, not the history.

500,000 finished jobs, most of them in the partitions of 26 days, and 100,000 pending ones; every
statement that a piece of the engine executes is executed again under EXPLAIN, which says how it
went about it and how many pages it read.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
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
from tailrace.jobs.flows import NewFlow, operations, state
from tailrace.jobs.handler import parents
from tailrace.jobs.models import Attempt, Flow, Job, Queue
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
from tests.jobs.engine.plans.big_tables import FILL, FILL_FLOWS
from tests.jobs.engine.plans.pages_read import BIG, frugal
from tests.kit import change_queue, claimed
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Debounced, Fair, Log, Working

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(scope="module")
def _history(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = off")
            today = database_now().date()
            history.make_partitions(today - timedelta(days=number) for number in range(-1, 27))
            cursor.execute(FILL)
            cursor.execute(FILL_FLOWS)
            cursor.execute("RESET synchronous_commit")
            cursor.execute(
                "VACUUM (ANALYZE) tailrace_jobs_job, tailrace_events_event, tailrace_jobs_attempt,"
                " tailrace_jobs_queue, tailrace_jobs_flow, tailrace_jobs_dependency"
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


def test_a_claim_by_batch_key(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "batch_sizes", lambda self: {"lane0": 5})
    taken: list[Any] = []
    frugal(lambda: taken.extend(claimed(Fair.name)), pages=1500)
    assert [job.lane for job in taken] == ["lane0"] * 5


def test_a_claim_where_nothing_is_due() -> None:
    frugal(lambda: claimed("test.log"), pages=200)


@pytest.mark.parametrize("end", [State.COMPLETED, State.PENDING, State.FAILED])
def test_settling(end: State) -> None:
    jobs = claimed("test.work")
    outcome = None if end == State.COMPLETED else Attempt.Outcome.RETRIED
    frugal(lambda: settle.settle([Verdict(job, end, attempt=outcome) for job in jobs]))


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


def callback() -> Job:
    return Job.objects.get(flow_name="callback")


def test_deciding_a_callback_of_10_000_parents() -> None:
    """Each parent is looked for among the live jobs, twice, and in one day."""
    job = callback()
    assert job.after_id
    pages = 12 * 10_000
    frugal(lambda: dependents.release([job.after_id]), pages=pages)
    frugal(lambda: dependents.decide([job.pk]), pages=pages)
    assert dependents.release([job.after_id]) == 1
    assert callback().state == "pending"


def test_what_a_callback_of_10_000_parents_reads() -> None:
    """A batch of results, and the counts, seek each parent in all days. Of a table of dependencies
    that are mostly of one job, the whole may be read."""
    job, big = callback().pk, BIG - {"tailrace_jobs_dependency"}
    days = 28
    frugal(lambda: next(iter(parents.Parents(job))), pages=4 * days * parents.BATCH, big=big)
    frugal(lambda: parents.Parents(job).counts(), pages=4 * days * 10_000, big=big)


def test_the_status_of_flows() -> None:
    page = list(Flow.objects.order_by("-pk")[:50])
    frugal(lambda: state.statuses(page), pages=50 * 28 * 4)


def test_the_jobs_of_a_flow_by_its_id_and_names() -> None:
    flow = Flow.objects.get(name="wide")
    frugal(lambda: list(Job.objects.filter(flow_id=flow.pk, flow_name="callback")), pages=28 * 4)
    frugal(lambda: operations.cancel_jobs(flow), pages=3000)


def test_pausing_and_resuming_a_flow() -> None:
    flow = Flow.objects.get(name="wide")
    frugal(lambda: operations.pause_flow(flow, "me"), pages=3000)
    frugal(lambda: operations.resume_flow(flow, "me"), pages=12 * 10_000)


def test_enqueueing_a_flow() -> None:
    def enqueue_flow() -> None:
        flow = NewFlow("plans")
        flow.add(Working, after=flow.group(Working, [None] * 50))
        flow.enqueue()

    frugal(enqueue_flow, pages=10_000)


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
