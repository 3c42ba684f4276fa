"""Jobs that no event caused."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.registry import UnknownHandler
from tailrace.jobs.enqueue import InvalidJob, enqueue, enqueue_many
from tailrace.jobs.models import Job
from tests.kit import at_once
from tests.sandbox.event_types import Whispered
from tests.sandbox.handlers import Fair, Log, Work, Working

pytestmark = pytest.mark.django_db


def test_a_job_is_enqueued_with_its_validated_payload(run_jobs, scripted) -> None:
    handled = []
    scripted("test.work", lambda job: handled.append((job.payload, job.event, job.routing_key)))
    id = enqueue(Working, {"do": "x"}, routing_key="k")
    assert Job.objects.get().pk == id
    assert run_jobs("test.work") == 1
    assert handled == [(Work(do="x"), None, "k")]


def test_a_model_and_a_handlers_name_are_taken() -> None:
    assert enqueue("test.work", Work(note="n"))
    assert Job.objects.get().payload["note"] == "n"


def test_no_payload_is_an_empty_one() -> None:
    enqueue(Working)
    assert Job.objects.get().payload == {"do": "nothing", "seconds": 0.0, "note": ""}


def test_an_empty_payload_is_none_for_a_handler_that_takes_none() -> None:
    enqueue(Log, {})
    enqueue_many(Log, [{"payload": {}}])
    assert set(Job.objects.values_list("handler", "payload")) == {("test.log", None)}


@pytest.mark.parametrize(
    ("handler", "payload", "options", "message"),
    [
        (Working, {"do": 5}, {}, "payload.do: .*given: '5'"),
        (Working, {"what": 1}, {}, "payload.what"),
        (Log, {"a": 1}, {}, "takes no payload"),
        (Working, None, {"priority": 4}, "priority 4"),
        (Working, None, {"priority": -1}, "priority -1"),
        (Working, None, {"due_at": datetime(2026, 1, 1)}, "no time zone"),
        (Working, None, {"after": 10**9}, "no job 1000000000"),
        (Working, None, {"unique_key": "k" * 601}, "unique_key has 601 characters; at most 600"),
    ],
)
def test_what_cannot_be_enqueued_is_refused(handler, payload, options, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        enqueue(handler, payload, **options)
    assert not Job.objects.exists()


def test_an_unknown_handler_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownHandler, match=r"did you mean 'test\.work'"):
        enqueue("test.wrok")


def test_a_payload_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidJob, match="NUL"):
        enqueue(Working, {"note": "a\0b"})


def test_a_second_unstarted_job_of_a_unique_key_is_not_made(run_jobs) -> None:
    id = enqueue(Working, unique_key="k")
    assert enqueue(Working, unique_key="k") == id
    assert enqueue("test.other", unique_key="k") != id
    assert run_jobs("test.work") == 1
    assert enqueue(Working, unique_key="k") not in (id, None)


def test_an_event_owes_one_job_per_handler_and_routing_key() -> None:
    (event,) = publish(NewEvent(Whispered))
    assert enqueue(Working, event_id=event.id, routing_key="a")
    assert enqueue(Working, event_id=event.id, routing_key="a") is None
    assert enqueue(Working, event_id=event.id, routing_key="b")


def test_due_at_and_delay_are_waited_for(clock, run_jobs) -> None:
    enqueue(Working, due_at=datetime.now(UTC) + timedelta(hours=1))
    enqueue(Working, delay=60)
    assert run_jobs("test.work") == 0
    clock.step(61)
    assert run_jobs("test.work") == 1
    clock.step(3600)
    assert run_jobs("test.work") == 1


def test_whole_and_broken_delays_go_together(clock) -> None:
    assert enqueue_many(Working, [{"delay": 60}, {"delay": 0.5}, {}]) == 3


def test_many_are_one_statement(django_assert_num_queries) -> None:
    with django_assert_num_queries(1):
        created = enqueue_many(
            Fair, [{"lane": f"l{n % 3}", "unique_key": str(n)} for n in range(500)]
        )
    assert created == 500
    assert enqueue_many(Fair, [{"unique_key": "1"}, {"unique_key": "new"}]) == 1
    assert enqueue_many(Fair, []) == 0


def test_a_rolled_back_transaction_owes_nothing() -> None:
    with transaction.atomic():
        enqueue(Working)
        transaction.set_rollback(True)
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_many_at_once_wins_a_unique_key() -> None:
    ids = at_once(8, lambda _: enqueue(Working, unique_key="k"))
    assert set(ids) == {Job.objects.get().pk}
