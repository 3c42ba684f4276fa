"""The payload of a recorded event: its JSON, and the model of its type."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    field_validator,
)

from tailrace.events import types
from tailrace.events.errors import InvalidPayload, UnreadablePayload
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.events.types import EventType, Quarantined
from tests.sandbox.event_types import Happened

pytestmark = pytest.mark.django_db


class Open(EventType):
    """A payload that may have more keys than it declares."""

    name = "test.open"

    class Payload(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int = 0


class Passed(EventType):
    """A payload that is passed on as it came."""

    name = "test.passed"
    store_defaults = False

    class Payload(BaseModel):
        n: int = 0
        note: str = ""


class Strict(EventType):
    """A payload whose JSON is not what its model takes in Python."""

    name = "test.strict"

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        at: datetime
        first: int = Field(alias="from")

        @computed_field  # type: ignore[prop-decorator]
        @property
        def after(self) -> int:
            return self.first + 1


class Counted(EventType):
    """Counts its validations."""

    name = "test.counted"

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid")
        n: int = 0

        @field_validator("n")
        @classmethod
        def _count(cls, n: int) -> int:
            validations.append(n)
            return n


validations: list[int] = []


def read(event: Recorded) -> Recorded:
    """Return the event as another process reads it."""
    return Recorded.from_model(Event.objects.get(pk=event.id))


def changed(event: Recorded, **columns: Any) -> Recorded:
    """Return the event as if it had been recorded by other code."""
    Event.objects.filter(pk=event.id).update(**columns)
    return read(event)


def test_defaults_are_stored() -> None:
    (event,) = publish(NewEvent(Happened, {"who": "alice"}))
    assert event.raw_payload == {"who": "alice", "n": 0, "tags": [], "note": None}
    assert read(event).raw_payload == event.raw_payload


def test_defaults_of_a_model_instance_are_stored() -> None:
    (event,) = publish(NewEvent(Happened, Happened.Payload(n=3)))
    assert read(event).raw_payload == {"who": "", "n": 3, "tags": [], "note": None}


def test_a_type_may_store_only_what_was_given() -> None:
    (event,) = publish(NewEvent(Passed, {"n": 1}))
    assert read(event).raw_payload == {"n": 1}
    assert read(event).payload.note == ""


def test_keys_beyond_an_open_model_are_kept() -> None:
    (event,) = publish(NewEvent(Open, {"more": {"a": [1]}}))
    assert read(event).raw_payload == {"n": 0, "more": {"a": [1]}}
    assert read(event).payload.more == {"a": [1]}


def test_unknown_keys_are_refused_unless_the_payload_says_otherwise() -> None:
    """Also those of an instance, and the catalog says so."""
    with pytest.raises(InvalidPayload, match=r"test.passed: payload.noet: Extra inputs"):
        publish(NewEvent(Passed, {"n": 1, "noet": "x"}))
    with pytest.raises(ValidationError, match="noet"):
        Passed.Payload(noet="x")
    assert Passed.Payload.model_json_schema()["additionalProperties"] is False
    (event,) = publish(NewEvent(Passed, {"n": 1}))
    assert changed(event, payload={"n": 1, "later": 2}).payload.n == 1  # of newer code


def test_old_events_get_the_defaults_when_read() -> None:
    (event,) = publish(NewEvent(Happened))
    old = changed(event, payload={"who": "alice"})
    assert (old.payload.who, old.payload.n, old.payload.tags) == ("alice", 0, [])
    assert old.raw_payload == {"who": "alice"}


def test_keys_of_newer_code_are_left_out() -> None:
    (event,) = publish(NewEvent(Happened))
    newer = changed(event, payload={"n": 2, "since_tomorrow": 1})
    assert newer.payload == Happened.Payload(n=2)
    assert newer.raw_payload["since_tomorrow"] == 1


def test_strict_aliased_payloads_are_read_again() -> None:
    at = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
    (event,) = publish(NewEvent(Strict, {"at": at, "from": 1}))
    payload = read(event).payload
    assert (payload.at, payload.first, payload.after) == (at, 1, 2)


def test_publishing_and_reading_validates_once() -> None:
    validations.clear()
    (event,) = publish(NewEvent(Counted, {"n": 7}))
    assert (event.payload.n, validations) == (7, [7])
    again = read(event)
    assert validations == [7]
    assert again.payload is again.payload
    assert validations == [7, 7]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_an_instance_made_invalid_is_refused() -> None:
    payload = Happened.Payload()
    payload.n = "many"  # type: ignore[assignment]
    with pytest.raises(InvalidPayload, match=r"payload\.n"):
        publish(NewEvent(Happened, payload))
    assert not Event.objects.exists()


def test_an_infinite_default_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(types, "_registry", {})

    class Infinite(EventType):
        name = "test.infinite"

        class Payload(BaseModel):
            x: float = float("inf")

    with pytest.raises(InvalidPayload, match="infinite"):
        publish(NewEvent(Infinite))


def test_a_quarantined_event_has_a_payload_too() -> None:
    (event,) = publish(NewEvent(Happened, {"n": "many"}), outside=True)
    assert isinstance(event.payload, Quarantined.Payload)
    assert event.payload.payload == {"n": "many"}


def test_an_event_that_no_longer_fits_says_why() -> None:
    (event,) = publish(NewEvent(Happened))
    unreadable = changed(event, payload={"n": "many"})
    with pytest.raises(UnreadablePayload) as refused:
        _ = unreadable.payload
    text = str(refused.value)
    assert f"event {event.id} (test.happened)" in text
    assert "payload.n" in text
    assert "`raw_payload`" in text
    assert unreadable.raw_payload == {"n": "many"}


def test_an_event_of_an_undeclared_type_says_so() -> None:
    (event,) = publish(NewEvent(Happened))
    gone = changed(event, type="test.gone")
    with pytest.raises(UnreadablePayload, match=r"\(test\.gone\).*no app declares"):
        _ = gone.payload
