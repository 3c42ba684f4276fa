"""publish(outside=True): what others send is recorded, whatever it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.sandbox.event_types import Happened

pytestmark = pytest.mark.django_db


def quarantined(event: NewEvent) -> Event:
    """Publish what cannot be understood; return how it was kept."""
    (recorded,) = publish(event, outside=True)
    row = Event.objects.get(pk=recorded.id)
    assert row.type == recorded.type == "events.quarantined"
    assert row.problem == row.payload["reason"] == recorded.problem != ""
    assert not Job.objects.filter(event=row).exists()
    return row


def test_a_sound_event_is_recorded_as_from_inside() -> None:
    (event,) = publish(NewEvent(Happened, {"who": "obs"}), outside=True)
    assert (event.type, event.problem, event.subject) == ("test.happened", "", "obs")
    assert Job.objects.filter(event=event.id, handler="test.log").exists()


def test_an_unknown_type_is_quarantined_unchanged() -> None:
    row = quarantined(NewEvent("obs.brand_new", {"a": 1}, source="obs", source_id="9"))
    assert (row.payload["type"], row.payload["payload"]) == ("obs.brand_new", {"a": 1})
    assert (row.source, row.source_id) == ("obs", "9")


def test_an_invalid_payload_is_quarantined_with_its_reason() -> None:
    row = quarantined(NewEvent(Happened, {"n": "many"}))
    assert "payload.n" in row.problem
    assert row.payload["payload"] == {"n": "many"}


def test_a_quarantined_fact_is_recorded_once() -> None:
    fact = NewEvent("obs.new", source="obs", source_id="1")
    assert len(publish([fact, fact], outside=True)) == 1
    assert publish(fact, outside=True) == []


@pytest.mark.parametrize(
    "payload",
    [None, [], "text", 5, b"bytes", [1, {"a": "b\0"}], {"n": ("a\0",)}, {"n": {1, 2}}, object()],
    ids=lambda payload: type(payload).__name__,
)
def test_a_payload_that_is_no_object_is_quarantined(payload: Any) -> None:
    quarantined(NewEvent(Happened, payload))


def test_a_payload_that_is_nested_too_deeply_is_quarantined() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    quarantined(NewEvent(Happened, {"note": deep}))


def test_a_number_of_too_many_digits_is_quarantined() -> None:
    quarantined(NewEvent(Happened, {"note": 10**5000}))


@pytest.mark.parametrize("bad", ["\0", "\ud800"], ids=["nul", "surrogate"])
def test_unstorable_characters_are_replaced_and_flagged(bad: str) -> None:
    payload = {"who": f"a{bad}b", "note": {f"k{bad}": [f"v{bad}"]}}
    (event,) = publish(NewEvent(Happened, payload, actor=f"x{bad}"), outside=True)
    row = Event.objects.get(pk=event.id)
    assert row.payload["who"] == "a\ufffdb"
    assert row.payload["note"] == {"k\ufffd": ["v\ufffd"]}
    assert (row.actor, row.subject) == ("x\ufffd", "a\ufffdb")
    assert "replaced" in row.problem
    assert Job.objects.filter(event=row, handler="test.log").exists()


@pytest.mark.parametrize(
    "name", ["bad\0name", "bad\ud800", "", "x" * 100_000], ids=["nul", "surrogate", "empty", "long"]
)
def test_a_type_name_of_any_kind_is_quarantined(name: str) -> None:
    row = quarantined(NewEvent(name, {"a": 1}))
    assert len(row.payload["type"]) <= 1000


def test_what_is_too_large_is_kept_in_part() -> None:
    row = quarantined(NewEvent(Happened, {"note": "x" * 200_000}))
    assert "EVENTS_MAX_PAYLOAD_BYTES" in row.problem
    assert 1000 < len(row.payload["payload"]) < 65_536


def test_a_long_envelope_is_cut_to_its_limits() -> None:
    (event,) = publish(
        NewEvent(Happened, {"who": "w" * 3000}, source="s" * 3000, actor="a" * 3000), outside=True
    )
    assert (len(event.source), len(event.actor), len(event.subject)) == (200, 200, 500)


def test_a_naive_time_is_quarantined_at_the_time_of_recording() -> None:
    row = quarantined(NewEvent(Happened, occurred_at=datetime(2020, 1, 1)))
    assert row.occurred_at == row.recorded_at


def test_a_time_from_outside_is_kept() -> None:
    at = datetime(1999, 1, 1, tzinfo=UTC)
    assert publish(NewEvent(Happened, occurred_at=at), outside=True)[0].occurred_at == at


def test_an_odd_payload_is_flagged_and_still_has_its_jobs() -> None:
    (event,) = publish(NewEvent(Happened, {"n": -1}), outside=True)
    assert event.problem == "n is below zero"
    assert [row.pk for row in Event.objects.flagged()] == [event.id]
    assert Job.objects.filter(event=event.id).exists()


def test_from_inside_nothing_is_flagged() -> None:
    assert publish(NewEvent(Happened, {"n": -1}))[0].problem == ""


def test_good_and_bad_ones_of_one_call_keep_their_order() -> None:
    types = ["test.happened", "obs.new", "test.happened"]
    recorded = publish([NewEvent(name) for name in types], outside=True)
    assert [event.type for event in recorded] == [
        "test.happened",
        "events.quarantined",
        "test.happened",
    ]
