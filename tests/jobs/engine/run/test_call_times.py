"""When calls begin within their claims, and how long they take: what a job's waterfall shows."""

import time

import pytest
from django.contrib.auth.models import User

from tailrace.db.query import execute
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking.rescue import rescue
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Cancel, ClaimedJob
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.undo import undo
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.jobs import operators
from tests.kit import claimed, wait_until
from tests.sandbox.handlers import Batch, Waiting, Working

pytestmark = pytest.mark.django_db(transaction=True)
SLOW = 0.05


def call(id: int) -> tuple[float | None, float | None]:
    return Job.objects.values_list("call_after", "call_took").get(pk=id)


def parts(id: int) -> list[tuple[str, str]]:
    return [(span.what, span.kind) for span in explain(id).spans if span.kind != "queued"]


CALLED = [("claim 1 → call", "claim"), ("call → end", "run"), ("end → settle", "end")]


def take_long(job: ClaimedJob) -> None:
    execute("SELECT pg_sleep(%(seconds)s)", seconds=SLOW)


def test_a_job_waits_for_the_calls_before_it_in_its_claim(scripted, ten_to_a_claim) -> None:
    ids = [enqueue(Working) for _ in range(3)]
    scripted("test.work", take_long)
    assert drain("test.work") == 3
    calls = [call(id) for id in ids]
    for number, (after, took) in enumerate(calls):
        assert after >= number * SLOW
        assert took >= SLOW
    assert calls[2][0] >= calls[0][1] + calls[1][1]
    assert parts(ids[2]) == CALLED


def test_the_jobs_of_a_batch_have_one_call() -> None:
    ids = [enqueue(Batch) for _ in range(3)]
    assert drain("test.batch") == 3
    [(after, took)] = {call(id) for id in ids}
    assert after >= 0
    assert took >= 0


def test_a_call_of_an_async_handler() -> None:
    id = enqueue(Waiting)
    assert drain("test.waiting") == 1
    assert None not in call(id)
    assert parts(id) == CALLED


def test_when_the_call_of_a_running_job_began(scripted, ten_to_a_claim) -> None:
    ids, seen = [enqueue(Working) for _ in range(2)], []

    def work(job: ClaimedJob) -> None:
        if job.id == ids[0]:
            take_long(job)
        else:
            wait_until(lambda: call(job.id)[0] is not None)
            seen.append((call(job.id), parts(job.id)))

    scripted("test.work", work)
    drain("test.work")
    [((after, took), shown)] = seen
    assert after >= SLOW
    assert took is None
    assert shown == CALLED[:1]


def test_an_attempt_has_its_call_and_the_next_claim_begins_without_one(clock) -> None:
    id = enqueue(Working, {"do": "retry", "seconds": 60})
    drain("test.work")
    assert call(id) != (None, None)
    attempt = Attempt.objects.get(job=id)
    assert (attempt.call_after, attempt.call_took) == call(id)
    assert parts(id)[1:] == CALLED
    clock.step(100)
    claimed("test.work")
    assert call(id) == (None, None)
    assert [kind for _what, kind in parts(id)].count("claim") == 1, "that of the first attempt"


def test_the_attempt_of_a_lost_worker_has_when_its_call_began(clock) -> None:
    id = enqueue(Working)
    claimed("test.work")
    Job.objects.filter(pk=id).update(call_after=1.5)
    clock.step(Working.claim_timeout + 1)
    assert rescue() == 1
    attempt = Attempt.objects.get()
    assert (attempt.call_after, attempt.call_took) == (1.5, None)
    assert parts(id) == [("claim 1 → call", "claim"), ("call → end", "run")]


def test_a_replayed_job_shows_no_call_and_after_an_undo_its_own(scripted) -> None:
    ids = [enqueue(Working) for _ in range(2)]

    def cancel(job: ClaimedJob) -> None:
        raise Cancel("not now")

    scripted("test.work", cancel)
    drain("test.work")
    before = [parts(id) for id in ids]
    assert before[0][-3:] == CALLED
    chief = User.objects.create_user("chief")
    jobs = Job.objects.filter(pk__in=ids)
    summary = batches.apply(chief, batches.JOB_ACTIONS["replay"], jobs, what="both")
    assert not any(kind == "claim" for id in ids for _what, kind in parts(id))
    undo(summary.replay, chief)
    assert [parts(id) for id in ids] == before


def test_the_page_of_a_running_job_has_its_claim_and_its_call_apart(clock) -> None:
    began = time.monotonic()
    id = enqueue(Working)
    claimed("test.work")
    Job.objects.filter(pk=id).update(call_after=2)
    clock.step(10)
    page = operators.client("reader", "tailrace_jobs.view_job").get(
        f"/admin/tailrace_jobs/job/{id}/change/"
    )
    bars = [(bar.span.what, bar.span.kind) for bar in page.context["waterfall"].bars]
    assert bars[-2:] == [("claim 1 → call", "claim"), ("call → now", "run")]
    took = time.monotonic() - began  # the page itself, on a busy machine
    assert 7.9 < page.context["waterfall"].bars[-1].span.seconds < 8.1 + took
