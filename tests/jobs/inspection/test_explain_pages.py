"""Where a job's time went, the command, and the panel on the job's page."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job, Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection.explain.explanation import JobNotFound, explain
from tests.jobs import operators
from tests.jobs.inspection.explained import ago, change, codes, words
from tests.kit import claimed, run_and_settle
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Fair, Ordered, Other, Working

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("running_worker")]


def test_the_life_of_a_job_from_publish_to_settle(clock) -> None:
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    id = Job.objects.get(event=event.id, handler="test.log").pk
    clock.step(3000)
    jobs = claimed("test.log")
    clock.step(700)
    run_and_settle(jobs)
    parts = [(span.what, round(span.seconds, -2)) for span in explain(id).spans]
    assert parts == [
        ("publish → job", 0),
        ("due → claim", 3000),
        ("claim 1 → call", 0),
        ("call → end", 0),
        ("end → settle", 700),
    ]


def test_a_delay_and_what_came_before_each_try(clock) -> None:
    id = enqueue(Working, {"do": "retry", "note": "not yet", "seconds": 6000}, delay=1000)
    clock.step(1500)
    run_and_settle(claimed("test.work"))
    clock.step(6500)
    change(id, payload={"do": "nothing"})
    run_and_settle(claimed("test.work"))
    parts = [(span.what, round(span.seconds, -2), span.why) for span in explain(id).spans]
    assert parts == [
        ("wait → claim", 1500, "not due yet, then queued"),
        ("claim 1 → call", 0, ""),
        ("call → end", 0, "retried: not yet"),
        ("end → settle", 0, ""),
        ("wait → due", 6000, "backoff"),
        ("due → claim", 500, "queued"),
        ("claim 2 → call", 0, ""),
        ("call → end", 0, "completed"),
        ("end → settle", 0, ""),
    ]


def test_a_job_that_waited_for_another(clock, run_jobs) -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    clock.step(2000)
    run_jobs()
    first = explain(child).spans[0]
    assert (first.what, round(first.seconds, -2), first.why) == (
        "wait → due",
        2000,
        f"waiting for job {parent}, or not due yet",
    )


def test_a_backfilled_job_that_was_cancelled_unstarted() -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", recorded_at=ago(900))
    id = change(enqueue(Working), event_id=event.pk, created_at=ago(600))
    cancel([id])
    parts = [(span.what, round(span.seconds, -2), span.why) for span in explain(id).spans]
    assert parts == [
        ("publish → job", 300, "created later by backfill"),
        ("wait → end", 600, "not started until it was cancelled"),
    ]


# --- the command and the page ---------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_subcommand("explain", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_explains_in_words(run_jobs) -> None:
    id = enqueue(Working)
    text = run(str(id))
    assert text.startswith(
        f"job {id} (test.work) is queued\nReady: one of the next claims takes it"
    )
    run_jobs("test.work")
    text = run(str(id))
    assert text.index("claim 1 → call") < text.index("call → end") < text.index("end → settle")
    assert "Not recorded: when the wake-up reached a worker" in text


def test_the_command_explains_as_json() -> None:
    id = enqueue(Working, delay=60)
    explanation = json.loads(run(str(id), "--json"))
    assert (explanation["job"], explanation["state"], explanation["ready"]) == (id, "pending", "no")
    assert explanation["reasons"][0]["code"] == "not_due"


def test_a_job_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="there is no job 7777"):
        call_subcommand("explain", "7777")
    with pytest.raises(JobNotFound):
        explain(7777)


def test_explaining_changes_nothing(django_assert_max_num_queries) -> None:
    ids = [enqueue(Ordered, lane="a"), enqueue(Fair, lane="a"), enqueue(Working)]
    before = list(Job.objects.values()), list(Queue.objects.values())
    for id in ids:
        with django_assert_max_num_queries(25):
            explain(id)
    assert (list(Job.objects.values()), list(Queue.objects.values())) == before


def test_the_page_explains_with_the_view_permission() -> None:
    id = enqueue(Ordered, lane="<b>bold</b>")
    claimed("test.ordered")
    waiting = enqueue(Ordered, lane="<b>bold</b>")
    pause("test.ordered", by="<script>alert(1)</script>")
    page = operators.client("reader", "tailrace_jobs.view_job").get(
        f"/admin/tailrace_jobs/job/{waiting}/change/"
    )
    text = page.content.decode()
    assert '<span class="tr-state tr-pending">queued</span>' in text
    assert "has been paused by &lt;script&gt;alert(1)&lt;/script&gt; since" in text
    assert "<script>alert(1)" not in text
    assert "<b>bold" not in text
    assert f'href="/admin/tailrace_jobs/job/{id}/change/">job {id}</a>' in text


def test_the_page_shows_where_the_time_went(run_jobs) -> None:
    id = enqueue(Working)
    run_jobs("test.work")
    page = operators.client("reader", "tailrace_jobs.view_job").get(
        f"/admin/tailrace_jobs/job/{id}/change/"
    )
    assert "Time spent" in page.content.decode()


def test_the_page_is_not_for_strangers() -> None:
    id = enqueue(Working)
    assert (
        operators.client("stranger").get(f"/admin/tailrace_jobs/job/{id}/change/").status_code
        == 403
    )


def test_the_page_of_a_job_that_is_gone_leads_back() -> None:
    page = operators.client("reader", "tailrace_jobs.view_job").get(
        "/admin/tailrace_jobs/job/7777/change/"
    )
    assert page.status_code == 302


def test_an_attempt_without_a_start_is_shown() -> None:
    id = enqueue(Working)
    Attempt.objects.create(job_id=id, claim_no=1, started_at=None, outcome="lost")
    assert [span.what for span in explain(id).spans][-1] == "claim 1 → end"


def test_tick_and_sweep_do_what_explain_announced(clock) -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(11))
    assert "queues it within seconds" in words(child, "parent_finished")
    sweep.sweep(["jobs.waits_for_finished"])
    assert explain(child).ready == "yes"
    tick.tick()
    assert "awake" in codes(child)
