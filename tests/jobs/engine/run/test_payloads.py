"""The payloads that a handler reads, and those that nobody can read."""

import pytest

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def test_an_events_payload_is_a_model(scripted, run_jobs) -> None:
    scripted("test.log", lambda job: [job.event.payload.who, job.event.payload.n])
    (event,) = publish(NewEvent(Happened, {"who": "alice"}))
    run_jobs("test.log")
    assert Job.objects.get(event=event.id, handler="test.log").result == ["alice", 0]


def test_an_unreadable_payload_fails_the_job_at_once(scripted, run_jobs) -> None:
    scripted("test.log", lambda job: job.event.payload.who)
    (event,) = publish(NewEvent(Happened))
    Event.objects.filter(pk=event.id).update(payload={"n": "many"})
    run_jobs("test.log")
    job = Job.objects.get(event=event.id, handler="test.log")
    assert (job.state, job.attempt) == ("failed", 1)
    assert "(test.happened) cannot be read: payload.n" in job.error


def test_a_raw_payload_needs_no_model(scripted, run_jobs) -> None:
    scripted("test.log", lambda job: job.event.raw_payload)
    (event,) = publish(NewEvent(Happened))
    Event.objects.filter(pk=event.id).update(payload={"n": "many"})
    run_jobs("test.log")
    assert Job.objects.get(event=event.id, handler="test.log").result == {"n": "many"}


def test_a_payload_that_no_longer_validates_fails_alone(run_jobs) -> None:
    ids = [enqueue(Working) for _ in range(3)]
    Job.objects.filter(pk=ids[1]).update(payload={"do": 7})
    run_jobs("test.work")
    states = dict(Job.objects.values_list("id", "state"))
    assert states == {ids[0]: "completed", ids[1]: "failed", ids[2]: "completed"}
    job = Job.objects.get(pk=ids[1])
    assert job.attempt == 1
    assert "payload does not validate: payload.do:" in job.error
