"""explain: each reason in words, where the time went, the command, and the panel on the page."""

from datetime import timedelta
from typing import Any

import pytest
from celery import current_app

from events import clock as events_clock
from jobs import dead, operate, rescue
from jobs.enqueue import enqueue, enqueue_many
from jobs.explain import explain
from jobs.explain_serving import ask_broker
from jobs.models import Job, Pulse, Queue
from tests.kit import claimed, empty_broker
from tests.sandbox.handlers import Fair, Ordered, Other, Working

pytestmark = pytest.mark.django_db

ALL = ["test.work", "test.other", "test.fair", "test.ordered", "test.log"]


@pytest.fixture(autouse=True)
def _served() -> None:
    """A worker and the tick were heard of just now."""
    Pulse.objects.create(name="worker:w@test", at=events_clock.now(), queues=ALL)
    Pulse.objects.create(name="tick", at=events_clock.now())


def words(id: int | None, code: str) -> str:
    """Return the words of the one reason of this code."""
    assert id is not None
    found = explain(id)
    (reason,) = [each for each in (*found.reasons, *found.serving) if each.code == code]
    return reason.words


def codes(id: int | None) -> list[str]:
    assert id is not None
    found = explain(id)
    return [reason.code for reason in (*found.reasons, *found.serving)]


def change(id: int | None, **fields: Any) -> int:
    assert id is not None
    assert Job.objects.filter(pk=id).update(**fields)
    return id


def ago(seconds: float) -> Any:
    return events_clock.now() - timedelta(seconds=seconds)


# --- pending --------------------------------------------------------------------------------------


def test_the_next_claim_takes_it() -> None:
    enqueue(Working)
    id = enqueue(Working)
    found = explain(id)
    assert (found.ready, found.next_claim, found.before) == ("yes", "yes", 1)
    assert found.summary == "Ready: the next claim takes it; 1 job stands before it."


def test_others_stand_before_it() -> None:
    enqueue_many(Working, [{}] * 12)
    found = explain(enqueue(Working))
    assert (found.ready, found.next_claim) == ("yes", "no")
    assert found.summary == (
        "Ready, but the next claim does not reach it: 12 jobs stand before it."
    )


def test_its_lane_has_to_have_its_turn(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "batch_size", 1)
    made = [enqueue(Fair, lane=lane) for lane in "ab"]
    found = explain(made[0])
    assert (found.ready, found.next_claim) == ("yes", "turn")
    assert "depends on whose lane has its turn; no job of its lane stands before it" in (
        found.summary
    )


def test_it_is_not_due() -> None:
    found = explain(enqueue(Working, delay=3600))
    assert (found.ready, found.before) == ("no", 0)
    assert found.summary.startswith("Not now: It is not due until 2")
    assert "UTC (in 60 min)" in found.summary


def test_it_waits_for_its_next_try_and_the_last_error_is_told(run_jobs) -> None:
    id = enqueue(Working, {"do": "raise", "note": "no such host"})
    run_jobs("test.work")
    assert words(id, "not_due").endswith("Its last try ended with: no such host")


def test_its_queue_is_paused_by_somebody_since_a_time() -> None:
    id = enqueue(Working)
    operate.pause("test.work", by="alice")
    assert words(id, "paused").startswith("The queue test.work is paused by alice since 2")


def test_max_running_is_reached_by_named_jobs() -> None:
    Queue.objects.filter(pk="test.work").update(max_running=2)
    first, second, third = (enqueue(Working) for _ in range(3))
    claimed("test.work")
    assert words(third, "max_running") == (
        f"test.work runs at most 2 at once; running: jobs {first} and {second}."
    )


def test_max_running_leaves_room_for_others_alone() -> None:
    Queue.objects.filter(pk="test.work").update(max_running=2)
    _first, _second, third = (enqueue(Working) for _ in range(3))
    assert words(third, "max_running") == (
        "test.work runs at most 2 at once; running: none."
        " That leaves room for 2, and others stand before it."
    )


def test_the_rate_limit_says_when_the_next_may_begin() -> None:
    later = events_clock.now() + timedelta(hours=1)
    Queue.objects.filter(pk="test.work").update(rate_limit=0.5, tokens=0.5, tokens_at=later)
    assert words(enqueue(Working), "rate_limit") == (
        "The rate limit of test.work is 0.5 jobs a second; the next may begin in 1.0 s."
    )


def test_its_lane_is_busy_and_keeps_its_order(clock, run_jobs) -> None:
    head, second, third = (enqueue(Ordered, lane="home:alice") for _ in range(3))
    (running,) = claimed("test.ordered")
    text = words(third, "lane_busy")
    assert text.startswith("Its lane home:alice runs one job at a time, and ")
    assert f"job {head} is running, on {running.worker}, lease until 2" in text
    assert words(third, "lane_order") == (
        f"Its lane home:alice keeps its order: the head of the lane is job {second}."
    )
    assert explain(third).named == [head, second]


def test_the_head_of_its_lane_is_not_due() -> None:
    head = enqueue(Ordered, lane="a", delay=3600)
    text = words(enqueue(Ordered, lane="a"), "lane_order")
    assert f"the head of the lane is job {head}, which is not due until" in text


def test_it_has_no_lane_where_lanes_are_served() -> None:
    id = change(enqueue(Working), handler="test.fair")
    assert words(id, "no_lane").startswith("test.fair takes its jobs lane by lane")
    assert claimed("test.fair") == []


def test_another_is_claimed_alone_before_it() -> None:
    id, lost = enqueue(Working), enqueue(Working)
    change(lost, isolate=True)
    found = explain(id)
    assert (found.ready, found.next_claim) == ("yes", "no")
    assert found.summary == (
        f"Ready, but another goes first. Job {lost} lost its worker once: it is claimed alone, "
        "and before the others of its batch."
    )
    assert [job.id for job in claimed("test.work")] == [lost]


def test_its_handler_is_unknown() -> None:
    id = change(enqueue(Working), handler="test.gone")
    assert words(id, "unknown_handler") == (
        "No handler is called test.gone in this code. Deploy one of that name; else the sweeper "
        "moves the job to failed."
    )
    Queue.objects.create(name="test.gone")
    assert "Other code has one" in words(id, "unknown_handler")


# --- who comes for it -----------------------------------------------------------------------------


def test_no_worker_listens() -> None:
    Pulse.objects.filter(name="worker:w@test").update(queues=["test.other"])
    found = explain(enqueue(Working))
    assert found.ready == "yes"
    assert found.summary.endswith(
        "But nobody comes to claim it: No worker listens on test.work: 1 were heard of in the "
        "last 30 s."
    )


def test_a_worker_that_was_not_heard_of_does_not_count() -> None:
    Pulse.objects.filter(name="worker:w@test").update(at=ago(60))
    assert "none at all was heard of" in words(enqueue(Working), "no_worker")


def test_the_tick_is_away() -> None:
    Pulse.objects.filter(name="tick").update(at=ago(60))
    assert words(enqueue(Working), "no_tick").startswith("The tick ran 60 s ago")


@pytest.fixture
def elsewhere(monkeypatch) -> None:
    """The broker's address leads nowhere."""
    scheme = current_app.conf.broker_url.partition("://")[0]
    nowhere = "redis://127.0.0.1:1/0" if scheme.startswith("redis") else "amqp://127.0.0.1:1//"
    monkeypatch.setattr(current_app.conf, "broker_url", nowhere)


def test_the_broker_is_away(elsewhere) -> None:
    id = enqueue(Working)
    assert words(id, "broker_away").startswith("The broker does not answer (Connection")
    assert "But nobody comes to claim it: The broker does not answer" in explain(id).summary


def test_a_wake_up_is_out_and_lies_at_the_broker() -> None:
    empty_broker()
    id = enqueue(Working)
    Queue.objects.filter(pk="test.work").update(awake=True, awake_at=ago(1), drained_at=ago(50))
    current_app.send_task("test.work", queue="test.work")
    assert ask_broker("test.work").messages == 1
    text = words(id, "awake")
    assert "and the last drain began 2" in text
    assert "It lies at the broker" in text
    assert "The tick sends another" in text
    empty_broker()


def test_a_wake_up_is_out_and_a_worker_has_it_or_it_was_lost() -> None:
    empty_broker()
    id = enqueue(Working)
    Queue.objects.filter(pk="test.work").update(awake=True, awake_at=ago(1), drained_at=None)
    text = words(id, "awake")
    assert "no drain has ever begun. A worker fetched it" in text


def test_no_wake_up_is_out() -> None:
    id = enqueue(Working)
    Queue.objects.filter(pk="test.work").update(awake=False, drained_at=ago(3))
    assert words(id, "asleep").startswith("No wake-up is out; the last drain began 2")


def test_its_queue_is_retired_though_the_handler_is_here() -> None:
    id = enqueue(Working)
    Queue.objects.filter(pk="test.work").update(retired_at=ago(60))
    assert "`manage.py migrate` with this code brings it back" in words(id, "queue_retired")


# --- waiting and running --------------------------------------------------------------------------


def test_it_waits_for_a_job() -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    assert words(child, "waits") == (f"It waits for job {parent} (test.work), which is pending.")
    change(parent, state="failed")
    assert "the sweeper cancels it within seconds" in words(child, "parent_finished")
    Job.objects.filter(pk=parent).delete()
    assert "is gone: the sweeper cancels it" in words(child, "parent_gone")


def test_it_runs_and_says_where_and_how_long() -> None:
    id = enqueue(Working)
    (job,) = claimed("test.work")
    job.progress(3, 10, "halfway")
    operate.cancel([job.id])
    assert words(id, "running").startswith(f"{job.worker} runs it since 2")
    assert words(id, "running").endswith("attempt 1 of 3, claim 1.")
    assert words(id, "progress") == "It is at 3 of 10 (halfway)."
    assert "(in 60 s); the worker prolongs it" in words(id, "lease").replace("59 s", "60 s")
    assert words(id, "cancel_requested").startswith("It was asked to stop")


@pytest.mark.parametrize(
    ("fields", "then", "state"),
    [
        ({}, "The tick gives it to another, alone.", "pending"),
        ({"attempt": 3}, "The tick moves it to failed: it has used its 3 attempts.", "failed"),
        ({"cancel_requested": True}, "The tick cancels it, as was asked for.", "cancelled"),
    ],
)
def test_its_lease_has_ended_and_what_the_tick_then_does(fields, then: str, state: str) -> None:
    id = enqueue(Working)
    claimed("test.work")
    change(id, lease_until=ago(5), **fields)
    assert words(id, "lease_expired").endswith(f"its worker is silent. {then}")
    rescue.rescue()
    assert Job.objects.get(pk=id).state == state


# --- finished -------------------------------------------------------------------------------------


def test_it_failed_for_good(run_jobs) -> None:
    id = enqueue(Working, {"do": "permanent", "note": "no such project"})
    run_jobs("test.work")
    assert "for good, at attempt 1 of 3: no such project." in words(id, "permanent")
    assert f"`manage.py jobs replay {id}`" in words(id, "replay")


def test_it_failed_with_its_attempts_used_up(run_jobs, clock) -> None:
    id = enqueue(Working, {"do": "raise", "note": "no such host"})
    for _ in range(3):
        run_jobs("test.work")
        clock.step(1000)
    text = words(id, "attempts_used_up")
    assert text.endswith("all 3 attempts are used up. The last said: no such host.")


def test_it_failed_as_its_workers_were_lost() -> None:
    id = enqueue(Working)
    claimed("test.work")
    change(id, lease_until=ago(5), attempt=3)
    rescue.rescue()
    assert "its worker was lost" in words(id, "workers_lost")


def test_it_failed_as_its_handler_is_gone() -> None:
    id = change(enqueue(Working), handler="test.gone")
    dead.bury([id])
    assert "was never tried: no handler is called test.gone" in words(id, "failed_untried")
    change(id, claim_no=1)
    assert "no handler is called test.gone" in words(id, "unknown_handler")


def test_it_was_cancelled_by_somebody() -> None:
    id = enqueue(Working)
    operate.cancel([id], by="alice")
    assert words(id, "cancelled") == "It was cancelled by alice."


def test_it_was_skipped_and_completed(run_jobs) -> None:
    skipped = enqueue(Working, {"do": "skip", "note": "already there"})
    completed = enqueue(Working)
    run_jobs("test.work")
    assert words(skipped, "skipped") == "Its handler had nothing to do: already there."
    assert words(completed, "completed").startswith("It was completed at the first attempt, by ")
