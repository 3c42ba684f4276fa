"""publish from inside: what is recorded, what is refused, and in whose transaction."""

import json
import threading
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from tailrace.db import locks
from tailrace.events import context
from tailrace.events.errors import InvalidPayload, UnknownEventType
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, Recorded, apublish, publish
from tailrace.events.publishing.signals import on_published, published
from tailrace.jobs.models import Job
from tests.kit import PATIENCE, at_once, sessions_that_wait, wait_until
from tests.sandbox.event_types import Bought, Happened

pytestmark = pytest.mark.django_db


def test_one_event_is_recorded_and_returned() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    (event,) = publish(
        NewEvent(Happened, {"who": "alice"}, source="obs:1", source_id="7", occurred_at=at)
    )
    row = Event.objects.get(pk=event.id)
    assert (row.type, row.source, row.source_id) == ("test.happened", "obs:1", "7")
    assert (row.subject, row.payload["who"], row.occurred_at) == ("alice", "alice", at)
    assert event == Recorded.from_model(row)
    assert row.recorded_at is not None
    assert row.problem == ""


def test_a_receiver_gets_only_events_of_its_types() -> None:
    received = []

    @on_published(Bought)
    def receive(events: list[Recorded]) -> None:
        received.append([event.type for event in events])

    try:
        publish([NewEvent(Happened, {"who": "alice"}), NewEvent(Bought, {"order": 1})])
        publish(NewEvent(Happened, {"who": "bob"}))
    finally:
        assert published.disconnect(dispatch_uid=f"{__name__}.{receive.__qualname__}")
    assert received == [["test.bought"]]


def test_many_events_are_returned_in_their_order() -> None:
    events = publish([NewEvent("test.happened", {"n": n}) for n in range(50)])
    assert [event.payload.n for event in events] == list(range(50))
    assert [event.id for event in events] == sorted(event.id for event in events)


def test_nothing_to_publish_touches_nothing(django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        assert publish([]) == []


def test_a_generator_of_events_is_taken() -> None:
    assert len(publish(NewEvent(Happened) for _ in range(3))) == 3


def test_an_event_without_source_id_is_never_a_duplicate() -> None:
    assert len(publish([NewEvent(Happened), NewEvent(Happened)])) == 2


def test_the_first_of_two_equal_facts_is_recorded() -> None:
    facts = [NewEvent(Happened, {"n": n}, source="s", source_id="1") for n in (1, 2)]
    assert [event.payload.n for event in publish(facts)] == [1]
    assert Event.objects.get().payload["n"] == 1


def test_a_known_fact_is_not_recorded_again() -> None:
    publish(NewEvent(Happened, source="s", source_id="1"))
    jobs = Job.objects.count()
    fresh = publish([NewEvent(Happened, source="s", source_id=id) for id in ("1", "2")])
    assert [event.source_id for event in fresh] == ["2"]
    assert Job.objects.count() == 2 * jobs


def test_the_same_id_from_another_source_is_another_fact() -> None:
    for source in ("a", "b"):
        assert len(publish(NewEvent(Happened, source=source, source_id="1"))) == 1


def test_a_rolled_back_transaction_leaves_nothing() -> None:
    with transaction.atomic():
        publish(NewEvent(Happened))
        assert Job.objects.exists()
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert not Job.objects.exists()


def test_one_bad_event_of_many_records_none() -> None:
    with pytest.raises(InvalidPayload):
        publish([NewEvent(Happened), NewEvent(Happened, {"n": "many"})])
    assert not Event.objects.exists()


def test_a_refused_event_leaves_the_callers_transaction_usable() -> None:
    with transaction.atomic():
        with pytest.raises(InvalidPayload):
            publish(NewEvent(Happened, {"n": "many"}))
        publish(NewEvent(Happened))
    assert Event.objects.count() == 1


def test_an_unknown_type_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownEventType, match=r"did you mean 'test\.happened'"):
        publish(NewEvent("test.hapened"))


def test_an_unlike_type_is_refused_without_a_suggestion() -> None:
    with pytest.raises(UnknownEventType) as refused:
        publish(NewEvent("zzzzzz"))
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"n": "many"}, r"payload.n: .*integer.*'many'"),
        ({"wo": 1}, r"payload.wo: Extra inputs.*did you mean 'who'\?"),
        ({"who": "a\0b"}, "NUL"),
        ({"who": "a\ud800b"}, "payload.who|surrogate"),
        ({"note": {"deep": ["a\0"]}}, "NUL"),
        ({"note": 10**5000}, "is not JSON"),
        ({"note": "x" * 70_000}, "EVENTS_MAX_PAYLOAD_BYTES"),
    ],
    ids=["type", "extra", "nul", "surrogate", "deep nul", "digits", "size"],
)
def test_the_error_names_what_is_wrong_with_a_payload(payload: dict, message: str) -> None:
    with pytest.raises(InvalidPayload, match=message):
        publish(NewEvent(Happened, payload))
    assert not Event.objects.exists()


def test_a_model_instance_is_a_payload() -> None:
    (event,) = publish(NewEvent(Happened, Happened.Payload(who="bob")))
    assert event.payload.who == event.raw_payload["who"] == "bob"


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidPayload, match="time zone"):
        publish(NewEvent(Happened, occurred_at=datetime(2026, 1, 1)))


@pytest.mark.parametrize("field", ["source", "source_id", "subject", "actor", "trace_parent"])
def test_each_field_of_the_envelope_has_a_limit(field: str) -> None:
    with pytest.raises(InvalidPayload, match=rf"{field} has 5000 characters"):
        publish(NewEvent(Happened, **{field: "x" * 5000}))
    with pytest.raises(InvalidPayload, match=f"{field} has a character"):
        publish(NewEvent(Happened, **{field: "a\0b"}))


def test_cause_actor_and_trace_come_from_the_context() -> None:
    tokens = context.cause.set(5), context.actor.set("alice"), context.trace_parent.set("00-1-2-01")
    try:
        (event,) = publish(NewEvent(Happened))
        (explicit,) = publish(NewEvent(Happened, actor="bob", cause_id=6, trace_parent="x"))
    finally:
        for variable, token in zip(
            (context.cause, context.actor, context.trace_parent), tokens, strict=True
        ):
            variable.reset(token)
    assert (event.cause_id, event.actor, event.trace_parent) == (5, "alice", "00-1-2-01")
    assert (explicit.cause_id, explicit.actor, explicit.trace_parent) == (6, "bob", "x")


def test_an_event_of_a_handler_has_its_event_as_cause(run_jobs, scripted) -> None:
    scripted("test.log", lambda job: publish(NewEvent("test.whispered")) and None)
    (first,) = publish(NewEvent(Happened))
    run_jobs("test.log")
    assert Event.objects.get(type="test.whispered").cause_id == first.id


def test_a_payload_is_stored_as_it_was_published() -> None:
    note = {"é": "日本 😀", "big": 2**60, "nul": None, "x": [1.5, True]}
    payload = {"who": "", "n": 0, "tags": [], "note": note}
    (event,) = publish(NewEvent(Happened, payload))
    assert Event.objects.get(pk=event.id).payload == payload == event.raw_payload
    with connection.cursor() as cursor:
        cursor.execute("SELECT payload::text FROM tailrace_events_event")
        assert json.loads(cursor.fetchone()[0]) == payload


@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_a_number_that_json_does_not_know_is_refused(odd: float) -> None:
    for payload in ({"note": [1.5, {"deep": odd}]}, Happened.Payload(note=[odd])):
        with pytest.raises(InvalidPayload, match="infinite number or NaN"):
            publish(NewEvent(Happened, payload))
    assert not Event.objects.exists()


def test_a_thousand_events_and_their_jobs_are_two_inserts(django_assert_num_queries) -> None:
    with django_assert_num_queries(2):
        publish([NewEvent(Happened, {"n": n}) for n in range(1000)])
    assert Job.objects.filter(handler="test.log").count() == 1000


@pytest.mark.django_db(transaction=True)
def test_two_publishers_of_one_fact_at_once_record_it_once() -> None:
    facts = [NewEvent(Happened, source="s", source_id=str(n)) for n in range(200)]
    answers = at_once(4, lambda _: publish(facts))
    assert sum(map(len, answers)) == 200 == Event.objects.count()
    assert Job.objects.filter(handler="test.log").count() == 200


def facts(*ids: str) -> list[NewEvent]:
    return [NewEvent(Happened, {"who": id}, source="feed", source_id=id) for id in ids]


@pytest.mark.django_db(transaction=True)
def test_the_same_facts_in_different_order_do_not_deadlock() -> None:
    """Of two calls, one waits at the first fact of the other, and holds none behind that one."""
    answers: list[list[Recorded]] = []
    thread = threading.Thread(
        target=lambda: answers.extend(at_once(1, lambda _: publish(facts("c", "b", "a"))))
    )
    with transaction.atomic():
        publish(facts("a"))
        thread.start()
        wait_until(sessions_that_wait)
        assert len(publish(facts("b", "c"))) == 2
    thread.join(PATIENCE)
    assert answers == [[]]
    assert Event.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_publisher_gives_up_on_a_fact_that_is_not_committed(monkeypatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    message = r"another open transaction has locked this for too long: the event 'a' of 'feed'"
    with transaction.atomic():
        publish(facts("a"))
        with pytest.raises(locks.Blocked, match=message):
            at_once(1, lambda _: publish(facts("a")), seconds=30)
        assert len(at_once(1, lambda _: publish(facts("b")), seconds=30)[0]) == 1
    assert publish(facts("a", "b")) == []


def test_facts_are_recorded_in_the_order_of_the_call() -> None:
    recorded = publish(facts("c", "a", "b", "a"))
    assert [event.source_id for event in recorded] == ["c", "a", "b"]
    assert [event.id for event in recorded] == sorted(event.id for event in recorded)


@pytest.mark.django_db(transaction=True)
async def test_an_async_caller_publishes() -> None:
    (event,) = await apublish(NewEvent(Happened, {"who": "async"}))
    assert await Event.objects.filter(pk=event.id, subject="async").aexists()
    await sync_to_async(connections.close_all)()  # of the thread that published
