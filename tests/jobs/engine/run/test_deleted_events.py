"""Jobs whose event was deleted. Pruning keeps the events of jobs, so it was deleted by hand, or a
restore left it out: the jobs fail at once, for all handlers, and a replay after a restore works."""

import pytest

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import NO_LANE
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.testing.perform import work_off
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Batch, Log, Working

pytestmark = pytest.mark.django_db
GONE = 10**12


def test_jobs_of_all_handlers_fail_at_once() -> None:
    names = sorted(registry.all_handlers())
    Job.objects.bulk_create(
        Job(handler=name, event_id=GONE, routing_key="x", lane=NO_LANE) for name in names
    )
    assert work_off(names) == len(names)
    jobs = Job.objects.values_list("handler", "state", "attempt", "error")
    assert sorted(jobs) == [(name, "failed", 1, f"event {GONE} was deleted") for name in names]


@pytest.mark.parametrize("handler", [Working, Batch])
def test_no_handler_is_called_for_one_and_the_others_of_its_batch_are(handler) -> None:
    kept, deleted = publish([NewEvent(Happened, {"who": who}) for who in ("kept", "deleted")])
    for event in (kept, deleted):
        enqueue(handler, {"note": event.payload.who}, event_id=event.id)
    enqueue(handler, {"note": "no event"})
    Event.objects.filter(id=deleted.id).delete()
    work_off([handler.name])
    states = dict(Job.objects.filter(handler=handler.name).values_list("event_id", "state"))
    assert states == {kept.id: "completed", deleted.id: "failed", None: "completed"}
    assert Attempt.objects.get().message == f"event {deleted.id} was deleted"


def test_a_job_is_replayed_when_its_event_is_restored() -> None:
    publish(NewEvent(Happened, {"who": "bob"}))
    row = Event.objects.get()
    Event.objects.all().delete()
    work_off([Log.name])
    job = Job.objects.get(handler=Log.name)
    assert job.state == "failed"
    row.save(force_insert=True)
    replay([job.pk])
    work_off([Log.name])
    assert Job.objects.get(pk=job.pk).state == "completed"
