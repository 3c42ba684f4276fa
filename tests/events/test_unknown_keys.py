"""Keys that a model within a payload does not declare are refused by publish, too."""

from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, model_validator

from tailrace.events.errors import InvalidPayload
from tailrace.events.publish import NewEvent, publish
from tailrace.events.types import EventType

pytestmark = pytest.mark.django_db


class Line(BaseModel):
    kind: Literal["line"] = "line"
    article: str = ""
    count: int = Field(1, validation_alias=AliasChoices("amount", "number"))


class Gift(BaseModel):
    kind: Literal["gift"]
    note: str = ""
    lines: list[Line] = []


class Box(BaseModel):
    model_config = ConfigDict(extra="allow")


class Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")
    n: int = 0


class Old(BaseModel):
    """Takes a name from before."""

    name: str

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, value: Any) -> Any:
        return {"name": value.get("title") or value["name"]}


class Lines(RootModel[list[Line]]):
    pass


class Ordered(EventType):
    """An order."""

    name = "test.ordered"

    class Payload(BaseModel):
        lines: list[Line | Gift] = []
        by_name: dict[str, Line] = {}
        pair: tuple[Line, int] | None = None
        first: Line | None = Field(None, alias="from")
        root: Lines = Lines([])
        box: Box = Box()
        loose: Loose = Loose()
        old: Old | None = None
        more: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"lines": [{}, {"articel": "x"}]}, r"lines\.1\.articel: .*did you mean 'article'"),
        ({"lines": [{"kind": "gift", "notes": "x"}]}, r"lines\.0\.notes: .*mean 'note'"),
        (
            {"lines": [{"kind": "gift", "lines": [{"amuont": 2}]}]},
            r"lines\.0\.lines\.0\.amuont: .*mean 'amount'",
        ),
        ({"by_name": {"a": {"x": 1}}}, r"by_name\.a\.x: Extra inputs are not permitted \(given"),
        ({"pair": [{"x": 1}, 2]}, r"pair\.0\.x"),
        ({"from": {"x": 1}}, r"from\.x"),
        ({"root": [{"x": 1}]}, r"root\.0\.x"),
    ],
)
def test_a_key_that_no_model_declares_is_refused(payload: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPayload, match=rf"test\.ordered: payload\.{place}") as caught:
        publish(NewEvent(Ordered, payload))
    assert caught.value.fields[0].path[0] == "payload"


def test_what_is_declared_or_allowed_is_published() -> None:
    (event,) = publish(
        NewEvent(
            Ordered,
            {
                "lines": [{"article": "x", "number": 2}, {"kind": "gift", "note": "y"}],
                "box": {"anything": 1},
                "loose": {"anything": 1},
                "old": {"title": "x"},
                "more": {"anything": {"x": 1}},
                "root": [{"amount": 3}],
            },
        )
    )
    assert event.payload.lines[0].count == 2
    assert event.payload.old.name == "x"
    assert event.payload.box.anything == 1
    assert event.payload.root.root[0].count == 3
