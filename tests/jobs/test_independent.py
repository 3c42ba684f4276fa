"""What is recorded independently stays, whatever happens to the caller's transaction."""

import pytest
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import Blocked, InvalidJob, enqueue, enqueue_many
from tailrace.jobs.models import Job
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Ordered, Working

pytestmark = pytest.mark.django_db(transaction=True)


class Refused(Exception):
    pass


def act_and_fail(request: HttpRequest) -> HttpResponse:
    publish(NewEvent(Happened, {"who": "undone"}))
    publish(NewEvent(Happened, {"who": "kept"}), independent=True)
    enqueue(Working, {"note": "undone"})
    enqueue(Working, {"note": "kept"}, independent=True)
    enqueue_many(Working, [{"payload": {"note": "kept, too"}}], independent=True)
    raise Refused


urlpatterns = [path("act", transaction.atomic(act_and_fail))]


@pytest.mark.urls(__name__)
def test_an_effect_stays_although_the_request_fails() -> None:
    with pytest.raises(Refused):
        Client().post("/act")
    [event] = Event.objects.filter(type=Happened.name)
    assert event.payload["who"] == "kept"
    assert Job.objects.filter(event=event).exists()
    notes = Job.objects.filter(handler=Working.name, event=None).values_list("payload__note")
    assert sorted(notes) == [("kept",), ("kept, too",)]


def test_the_job_is_claimable_while_the_transaction_is_open(run_jobs) -> None:
    with transaction.atomic():
        id = enqueue(Working, independent=True)
        assert run_jobs(Working.name) == 1
        assert Job.objects.get(pk=id).state == "completed"


def test_an_invalid_job_is_refused_as_always() -> None:
    with pytest.raises(InvalidJob, match="no_such_key"):
        enqueue(Working, {"no_such_key": 1}, independent=True)
    assert not Job.objects.exists()


def test_a_unique_key_that_the_caller_has_locked_is_an_error() -> None:
    """The caller's transaction has inserted the same key, and would wait for itself."""
    with transaction.atomic():
        enqueue(Ordered, unique_key="k")
        with pytest.raises(Blocked, match="'k'"):
            enqueue(Ordered, unique_key="k", independent=True)
    assert Job.objects.count() == 1
