"""Where a job's time went, the command, and the panel on the job's page."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from events.models import Event
from events.publish import NewEvent, publish
from jobs import operate, sweep, tick
from jobs.enqueue import enqueue
from jobs.explain import UnknownJob, explain
from jobs.models import Attempt, Job, Queue
from tests.jobs import operator_case as case
from tests.jobs.test_explain import _served, ago, change, codes, words  # noqa: F401  (a fixture)
from tests.kit import claimed, run_and_settle
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Fair, Ordered, Other, Working

pytestmark = pytest.mark.django_db


def test_the_life_of_a_job_from_publish_to_settle(clock) -> None:
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    id = Job.objects.get(event=event.id, handler="test.log").pk
    clock.step(30)
    jobs = claimed("test.log")
    clock.step(7)
    run_and_settle(jobs)
    parts = [(span.what, round(span.seconds)) for span in explain(id).spans]
    assert parts == [("publish → job", 0), ("due → claim", 30), ("claim 1 → settle", 7)]


def test_a_delay_and_what_came_before_each_try(clock) -> None:
    id = enqueue(Working, {"do": "retry", "note": "not yet", "seconds": 60}, delay=10)
    clock.step(15)
    run_and_settle(claimed("test.work"))
    clock.step(65)
    change(id, payload={"do": "nothing"})
    run_and_settle(claimed("test.work"))
    parts = [(span.what, round(span.seconds), span.why) for span in explain(id).spans]
    assert parts == [
        ("→ claim", 15, "not due yet, then in line"),
        ("claim 1 → end", 0, "retried: not yet"),
        ("→ due", 60, "backoff"),
        ("due → claim", 5, "in line"),
        ("claim 2 → settle", 0, "completed"),
    ]


def test_a_job_that_waited_for_another(clock, run_jobs) -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    clock.step(20)
    run_jobs()
    first = explain(child).spans[0]
    assert (first.what, round(first.seconds), first.why) == (
        "→ due",
        20,
        f"for job {parent}, or not due yet",
    )


def test_a_job_that_was_made_by_backfill_and_cancelled_unstarted() -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", recorded_at=ago(900))
    id = change(enqueue(Working), event_id=event.pk, created_at=ago(600))
    operate.cancel([id])
    parts = [(span.what, round(span.seconds), span.why) for span in explain(id).spans]
    assert parts == [
        ("publish → job", 300, "made later, by backfill"),
        ("→ end", 600, "unstarted, until it was cancelled"),
    ]


# --- the command and the page ---------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("explain", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_explains_in_words(run_jobs) -> None:
    id = enqueue(Working)
    text = run(str(id))
    assert text.startswith(f"job {id} (test.work) is pending\nReady: the next claim takes it")
    run_jobs("test.work")
    text = run(str(id))
    assert "claim 1 → settle" in text
    assert "Not recorded: when the wake-up reached a worker" in text


def test_the_command_explains_as_json() -> None:
    id = enqueue(Working, delay=60)
    found = json.loads(run(str(id), "--json"))
    assert (found["job"], found["state"], found["ready"]) == (id, "pending", "no")
    assert found["reasons"][0]["code"] == "not_due"


def test_a_job_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="there is no job 7777"):
        call_command("explain", "7777")
    with pytest.raises(UnknownJob):
        explain(7777)


def test_explaining_changes_nothing(django_assert_max_num_queries) -> None:
    ids = [enqueue(Ordered, lane="a"), enqueue(Fair, lane="a"), enqueue(Working)]
    before = list(Job.objects.values()), list(Queue.objects.values())
    for id in ids:
        with django_assert_max_num_queries(25):
            explain(id)
    assert (list(Job.objects.values()), list(Queue.objects.values())) == before


def test_the_page_says_why_for_whoever_may_view_jobs() -> None:
    id = enqueue(Ordered, lane="<b>bold</b>")
    claimed("test.ordered")
    waiting = enqueue(Ordered, lane="<b>bold</b>")
    operate.pause("test.ordered", by="<script>alert(1)</script>")
    page = case.person("reader", "jobs.view_job").get(f"/admin/jobs/job/{waiting}/change/")
    text = page.content.decode()
    assert "Why it is pending" in text
    assert "is paused by &lt;script&gt;alert(1)&lt;/script&gt; since" in text
    assert "<script>alert(1)" not in text
    assert "<b>bold" not in text
    assert f'href="/admin/jobs/job/{id}/change/">job {id}</a>' in text


def test_the_page_says_where_the_time_went(run_jobs) -> None:
    id = enqueue(Working)
    run_jobs("test.work")
    page = case.person("reader", "jobs.view_job").get(f"/admin/jobs/job/{id}/change/")
    assert "Where its time went" in page.content.decode()


def test_the_page_is_not_for_strangers() -> None:
    id = enqueue(Working)
    assert case.person("stranger").get(f"/admin/jobs/job/{id}/change/").status_code == 403


def test_the_page_of_a_job_that_is_gone_leads_back() -> None:
    page = case.person("reader", "jobs.view_job").get("/admin/jobs/job/7777/change/")
    assert page.status_code == 302


def test_an_attempt_says_as_much_as_it_recorded() -> None:
    id = enqueue(Working)
    Attempt.objects.create(job_id=id, claim_no=1, started_at=None, outcome="lost")
    assert [span.what for span in explain(id).spans][-1] == "claim 1 → end"


def test_tick_and_sweep_do_what_was_said(clock) -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(1))
    assert "lets it go on within seconds" in words(child, "parent_finished")
    sweep.sweep(["jobs.none_waits_for_finished"])
    assert explain(child).ready == "yes"
    tick.tick()
    assert "awake" in codes(child)
