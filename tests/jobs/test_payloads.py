"""Keys that a handler's model does not declare are refused where a job is handed in, and left out
where it is read."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import InvalidJob, enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.models import Job
from tailrace.jobs.operations.schedules import InvalidSchedule, NewSchedule, create_schedules
from tailrace.jobs.runtime.payloads import strict_model

pytestmark = pytest.mark.django_db


class Box(BaseModel):
    model_config = ConfigDict(extra="allow")


class Label(BaseModel):
    colour: str = "white"


class Parcel(BaseModel):
    """What is sent."""

    address: str = "home"
    weight: int = Field(1, validation_alias="grams")
    box: Box = Box()
    labels: list[Label] = []


class Ship(Handler):
    """Ship a parcel."""

    name = "test.payloads.ship"
    Payload = Parcel
    seen: ClassVar[list[BaseModel]] = []

    def handle(self, job: ClaimedJob) -> Any:
        self.seen.append(job.payload)


class ShipAnything(Ship):
    """Ship whatever it is."""

    name = "test.payloads.ship_anything"
    Payload = Box


class Letter(BaseModel):
    model_config = ConfigDict(extra="forbid")
    to: str


class ShipLetter(Ship):
    """Ship a letter."""

    name = "test.payloads.ship_letter"
    Payload = Letter


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    registry.clear()
    yield
    Ship.seen.clear()


@pytest.mark.parametrize(
    ("key", "meant"), [("adress", "'address'"), ("gramms", "'grams'"), ("q", "")]
)
def test_an_unknown_key_is_refused_with_the_handler_and_the_nearest_key(
    key: str, meant: str
) -> None:
    with pytest.raises(InvalidJob, match=rf"^{Ship.name}: payload\.{key}: ") as refused:
        enqueue(Ship, {key: "x"})
    assert (f"did you mean {meant}?" in str(refused.value)) == bool(meant)
    with pytest.raises(InvalidJob, match=key):
        enqueue_many(Ship, [{"payload": {}}, {"payload": {key: "x"}}])
    with pytest.raises(InvalidSchedule, match=key):
        create_schedules(
            [NewSchedule(name="s", handler=Ship.name, payload={key: 1}, every_seconds=9)]
        )
    assert not Job.objects.exists()


def test_a_model_that_takes_more_keys_gets_them(run_jobs) -> None:
    """Also one within another."""
    enqueue(ShipAnything, {"colour": "red"})
    enqueue(Ship, {"box": {"colour": "blue"}})
    run_jobs(Ship.name, ShipAnything.name)
    assert sorted(str(seen) for seen in Ship.seen) == [
        "address='home' weight=1 box=Box(colour='blue') labels=[]", "colour='red'",
    ]  # fmt: skip


def test_a_key_that_a_model_within_does_not_declare_is_refused(run_jobs) -> None:
    refusal = r"labels\.1\.color: .*did you mean 'colour'"
    with pytest.raises(InvalidJob, match=refusal):
        enqueue(Ship, {"labels": [{"colour": "red"}, {"color": "blue"}]})
    enqueue(Ship, {"labels": [{"colour": "red"}]})
    Job.objects.update(payload={"labels": [{"since_tomorrow": 1}]})
    run_jobs(Ship.name)
    assert Ship.seen[0].labels == [Label()]


def test_a_worker_leaves_out_what_only_newer_code_knows(run_jobs) -> None:
    """Also one whose model forbids them."""
    for handler, payload in ((Ship, {"address": "sea"}), (ShipLetter, {"to": "ann"})):
        id = enqueue(handler, payload)
        Job.objects.filter(pk=id).update(payload={**payload, "since_tomorrow": 1})
    run_jobs(Ship.name, ShipLetter.name)
    assert Ship.seen == [Parcel(address="sea"), Letter(to="ann")]


def test_a_field_with_an_alias_is_stored_and_read_by_its_name(run_jobs) -> None:
    for key in ("grams", "weight"):
        enqueue(Ship, {key: 5})
    assert {job.payload["weight"] for job in Job.objects.all()} == {5}
    run_jobs(Ship.name)
    assert [seen.weight for seen in Ship.seen] == [5, 5]


def test_the_model_itself_stays_as_it_is() -> None:
    """The schema that the API shows says what is refused; a model of one list has no keys."""
    assert strict_model(Parcel).model_json_schema()["additionalProperties"] is False
    assert strict_model(Parcel) is strict_model(Parcel)
    assert "additionalProperties" not in Parcel.model_json_schema()
    assert Parcel.model_validate({"x": 1}) == Parcel()
    assert strict_model(Box) is Box
    assert strict_model(RootModel[list[int]]) is RootModel[list[int]]
