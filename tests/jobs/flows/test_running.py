"""A job adds jobs to its own flow while it runs."""

import pytest
from django.db import transaction

from tailrace.db.query import query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import InvalidJob, NewFlow, RunningFlow
from tailrace.jobs.flows.operations import cancel_flow, pause_flow
from tailrace.jobs.handler import LeaseLost
from tailrace.jobs.models import Job
from tests.jobs.flows.kit import states, stored
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def flow_with_callback() -> NewFlow:
    flow = NewFlow("crawl")
    flow.add(Other, after=flow.add(Working, name="start"), name="callback")
    flow.enqueue()
    return flow


def test_the_callback_waits_for_jobs_that_join(run_jobs, scripted) -> None:
    got: list[str] = []

    def crawl(job) -> None:
        if job.attempt == 1 and not job.payload.note:
            flow = RunningFlow(job)
            flow.group(Working, [{"note": "x"}, {"note": "y"}], name="page", joins=True)
            flow.enqueue()

    scripted("test.work", crawl)
    scripted("test.other", lambda job: got.extend(parent.name for parent in job.parents()))
    flow = flow_with_callback()
    start = Job.objects.get(flow_name="start").pk
    run_jobs()
    assert states(flow) == {
        "start": "completed", "callback": "completed",
        f"page-1@{start}": "completed", f"page-2@{start}": "completed",
    }  # fmt: skip
    assert got == ["start", f"page-1@{start}", f"page-2@{start}"]


def test_the_callback_waits_for_a_flow_that_joins(run_jobs) -> None:
    part = NewFlow("part")
    part.chain([Working, Working])
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    running = RunningFlow(job)
    running.add_flow(part, joins=True)
    running.enqueue()
    run_and_settle([job])
    assert states(flow)["callback"] == "waiting"
    run_jobs()
    assert states(flow) == {
        "start": "completed", "callback": "completed",
        f"part/work@{job.id}": "completed", f"part/work-2@{job.id}": "completed",
    }  # fmt: skip


def test_without_joining_the_callback_does_not_wait(scripted) -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    running = RunningFlow(job)
    running.add(Working, name="aside", delay=60)
    running.enqueue()
    run_and_settle([job])
    assert states(flow)["callback"] == "pending"


def test_a_failed_job_that_joined_cancels_the_callback(run_jobs) -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    running = RunningFlow(job)
    running.add(Working, {"do": "permanent", "note": "no"}, joins=True)
    running.enqueue()
    run_and_settle([job])
    assert states(flow)["callback"] == "waiting"
    run_jobs("test.work")
    assert states(flow)["callback"] == "cancelled"


def test_a_job_that_is_tried_again_adds_nothing_twice(run_jobs, scripted, clock) -> None:
    ids: list[list[int]] = []

    def add(job) -> None:
        if job.payload.note == "added":
            return
        flow = RunningFlow(job)
        first = flow.add(Working, {"note": "added"}, joins=True)
        if job.attempt == 2:
            flow.add(Working, {"note": "added"}, after=first, joins=True)
        ids.append(flow.enqueue())
        if job.attempt == 1:
            raise RuntimeError("after it has added")

    scripted("test.work", add)
    flow = flow_with_callback()
    run_jobs()
    clock.step(100)
    run_jobs()
    assert ids[0] == ids[1][:1]
    assert len(states(flow)) == 4
    assert set(states(flow).values()) == {"completed"}


def test_a_rollback_adds_nothing() -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    with transaction.atomic():
        running = RunningFlow(job)
        running.add(Working, joins=True)
        running.enqueue()
        transaction.set_rollback(True)
    run_and_settle([job])
    assert states(flow) == {"start": "completed", "callback": "pending"}


def test_a_job_may_wait_for_jobs_of_the_flow_by_name(run_jobs) -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    running = RunningFlow(job)
    running.add(Working, name="last", after="callback")
    running.enqueue()
    run_and_settle([job])
    run_jobs()
    assert states(flow)[f"last@{job.id}"] == "completed"


def refused(job, match: str, **options) -> None:
    running = RunningFlow(job)
    running.add(Working, **options)
    with pytest.raises(InvalidJob, match=match):
        running.enqueue()
    # The transaction of the handler goes on.
    assert query("SELECT 1") == [(1,)]


def test_an_unknown_name_is_refused() -> None:
    flow_with_callback()
    (job,) = claimed("test.work")
    refused(job, "no job with this name; did you mean 'callback'", after="calback")


def test_a_job_that_joins_and_waits_for_what_waits_for_it_is_refused() -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    refused(job, "they would wait for one another", after="callback", joins=True)
    assert len(states(flow)) == 2


def test_a_cancelled_flow_gets_no_jobs() -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    cancel_flow(stored(flow), "Ann")
    refused(job, "was cancelled by Ann: no jobs can be added")


def test_jobs_added_to_a_paused_flow_are_held_back() -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    pause_flow(stored(flow), "Ann")
    running = RunningFlow(job)
    running.add(Working, name="more")
    running.enqueue()
    assert states(flow)[f"more@{job.id}"] == "waiting"


def test_a_job_that_lost_its_lease_adds_nothing() -> None:
    flow = flow_with_callback()
    (job,) = claimed("test.work")
    Job.objects.filter(pk=job.id).update(claim_no=2)
    running = RunningFlow(job)
    running.add(Working)
    with pytest.raises(LeaseLost):
        running.enqueue()
    assert len(states(flow)) == 2


def test_a_job_outside_of_flows_has_none() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    with pytest.raises(InvalidJob, match=r"job \d+ of test.work belongs to no flow"):
        RunningFlow(job)


def test_the_bound_counts_the_jobs_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    flow_with_callback()
    (job,) = claimed("test.work")
    monkeypatch.setattr("tailrace.jobs.flows.graph.MAX_JOBS", 2)
    refused(job, "has more than 2 jobs")
