"""The samples of all event types: valid by their schemas, and what a webhook contains."""

import json

import pytest
from pydantic import BaseModel, Field

from tailrace.events.catalog.samples import sample_event, sample_payload
from tailrace.events.types import EventType, all_types
from tailrace.subscriptions.channels.webhook.message import body_of_sample
from tailrace.subscriptions.channels.webhook.operations.filters import sent_types


def test_each_event_type_has_a_sample_that_is_valid() -> None:
    assert len(all_types()) > 40
    for event_type in all_types():
        payload = sample_event(event_type).raw_payload
        read = json.loads(json.dumps(payload))
        event_type.Payload.model_validate(read, by_alias=True, by_name=True, strict=False)


@pytest.mark.django_db
def test_each_webhook_has_a_sample_as_it_is_sent() -> None:
    for event_type in sent_types():
        body = json.loads(body_of_sample(event_type))
        assert body["type"] == body["data"]["type"] == event_type.name
        assert body["data"]["title"]
        assert body["data"]["payload"] == sample_payload(event_type)


class Shelf(BaseModel):
    width: float = Field(gt=2, lt=3)
    books: list[str] = Field(min_length=2)


class Stocked(EventType):
    """A shelf was stocked, which has every kind of field."""

    name = "samples.stocked"

    class Payload(BaseModel):
        shelf: Shelf
        code: str = Field(examples=["A-17"], pattern="[A-Z]-[0-9]{2}")
        count: int = Field(ge=7, le=9)
        colour: str = "red"
        note: str = Field(default="", min_length=0)
        pair: tuple[int, str]
        by_day: dict[str, int] = {}
        maybe: Shelf | None = None


def test_a_sample_follows_examples_bounds_and_defaults() -> None:
    sample = sample_payload(Stocked)
    assert sample["code"] == "A-17"
    assert sample["count"] == 7
    assert sample["colour"] == "red"
    assert sample["note"] == "note"
    assert sample["pair"] == [1, "pair"]
    assert 2 < sample["shelf"]["width"] < 3
    assert sample["shelf"]["books"] == ["book", "book"]
    assert sample["maybe"]["books"]
