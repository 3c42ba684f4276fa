"""Which jobs an event gets, and with which fields."""

from datetime import timedelta

import pytest

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.sandbox.event_types import Happened, HappenedAgain, Remembered, Whispered
from tests.sandbox.handlers import Log

pytestmark = pytest.mark.django_db


def handlers_of(event_type: type, **payload: object) -> list[str]:
    (event,) = publish(NewEvent(event_type, payload))
    return sorted(Job.objects.filter(event=event.id).values_list("handler", flat=True))


def test_each_handler_of_a_type_and_its_bases_gets_a_job() -> None:
    assert handlers_of(Happened) == ["test.family", "test.log"]
    assert handlers_of(HappenedAgain) == ["test.family", "test.log"]
    assert handlers_of(Whispered) == ["test.family"]


def test_one_job_per_routing_key() -> None:
    publish(NewEvent(Happened, {"tags": ["a", "b"]}))
    keys = Job.objects.filter(handler="test.keyed").values_list("routing_key", flat=True)
    assert sorted(keys) == ["a", "b"]


def test_the_same_routing_key_twice_is_one_job() -> None:
    publish(NewEvent(Happened, {"tags": ["a", "a"]}))
    assert Job.objects.filter(handler="test.keyed").count() == 1


def test_a_handler_that_does_not_want_the_event_gets_none() -> None:
    assert "test.keyed" not in handlers_of(Happened, who="nobody", tags=["a"])


def test_a_quiet_event_gets_jobs_of_quiet_handlers_alone(monkeypatch) -> None:
    monkeypatch.setattr(Log, "quiet", True)
    for actor, expected in (("", ["test.log"]), ("ann", ["test.family", "test.log"])):
        (event,) = publish(NewEvent(Remembered, actor=actor))
        jobs = Job.objects.filter(event=event.id).order_by("handler")
        assert list(jobs.values_list("handler", flat=True)) == expected


def test_lane_priority_and_delay_are_the_handlers(clock) -> None:
    (event,) = publish(NewEvent(Whispered))
    job = Job.objects.get(event=event.id)
    assert (job.state, job.priority, job.attempt, job.claim_no) == ("pending", 2, 0, 0)
    assert timedelta(seconds=30) <= job.due_at - event.recorded_at < timedelta(minutes=10)


def test_a_job_of_a_fair_handler_always_has_a_lane() -> None:
    publish([NewEvent(Whispered), NewEvent(Happened, {"who": "alice"})])
    jobs = Job.objects.filter(handler="test.family").order_by("id")
    assert list(jobs.values_list("lane", flat=True)) == ["-", "alice"]


def test_a_burst_with_one_unique_key_is_one_job(clock, run_jobs) -> None:
    publish([NewEvent(Happened, {"who": "alice", "n": n}) for n in range(5)])
    publish(NewEvent(Happened, {"who": "bob"}))
    assert Job.objects.filter(handler="test.debounced", state="pending").count() == 2
    clock.step(61)
    assert run_jobs("test.debounced") == 2
    publish(NewEvent(Happened, {"who": "alice"}))
    assert Job.objects.filter(handler="test.debounced", state="pending").count() == 1


def test_a_job_is_due_by_its_delay_and_not_before(clock, run_jobs) -> None:
    publish(NewEvent(Whispered))
    assert run_jobs("test.family") == 0
    clock.step(20)
    assert run_jobs("test.family") == 0
    clock.step(11)
    assert run_jobs("test.family") == 1


def test_a_failing_handler_does_not_stop_the_event(monkeypatch, clock) -> None:
    def wants(self: Log, event: object) -> bool:
        raise ValueError("odd\0 event")

    monkeypatch.setattr(Log, "wants", wants)
    (event,) = publish(NewEvent(Happened))
    job = Job.objects.get(event=event.id, handler="test.log")
    assert job.state == "failed"
    assert "ValueError: odd\ufffd event" in job.error
    assert job.finished_at is not None, "or it would never be pruned"
    assert Job.objects.filter(event=event.id, handler="test.family", state="pending").exists()


def test_the_handler_sees_the_event_as_it_was_published(run_jobs, scripted) -> None:
    handled = []
    scripted("test.log", lambda job: handled.append(job.event))
    events = publish([NewEvent(Happened, {"who": "é", "n": n}, actor="me") for n in range(3)])
    assert run_jobs("test.log") == 3
    assert handled == events
    assert handled[0].event_type is Happened
