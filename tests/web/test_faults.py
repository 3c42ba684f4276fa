"""Where errors are: every field of every body, every parameter of the query, headers."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.web.api.faults import pointer
from tailrace.web.api.site import api
from tests.web.everything import owner_of_everything, without_limits
from tests.web.jobs.requesting import operator, send
from tests.web.places import assert_places, tokens
from tests.web.program import Program, problem

EVENT = {"specversion": "1.0", "id": "1", "source": "/ci"}
pytestmark = pytest.mark.django_db

DOCUMENT = api.get_openapi_schema()
WRONG = {"never": ["a", "value"]}
"""Of no field: an object where a text, a number or a list belongs."""


@pytest.fixture
def ann(settings: Any) -> Program:
    without_limits(settings)
    result = owner_of_everything()
    result.user.is_superuser = True
    result.user.save()
    return result


def operations(*methods: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, ways in DOCUMENT["paths"].items():
        for method, operation in ways.items():
            if method in methods:
                yield method, path, operation


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return dict(DOCUMENT["components"]["schemas"][name]) if name else schema


def address(ann: Program, path: str) -> str:
    words = path.removeprefix("/api").split("/")
    return "/".join(
        str(ann.ids[before]) if word.startswith("{") else word
        for before, word in zip(["", *words], words, strict=False)
    )


def errors(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 422, (answer.wsgi_request.path, answer.content)
    result: list[dict[str, str]] = json.loads(answer.content)["errors"]
    return result


def test_every_field_of_every_body_is_pointed_at(ann: Program) -> None:
    fields = 0
    for method, path, operation in operations("post", "patch"):
        content = operation.get("requestBody", {}).get("content", {})
        schema = resolved(content.get("application/json", {}).get("schema", {}))
        for name, field in schema.get("properties", {}).items():
            if field.get("type") == "object" or "object" in str(field.get("anyOf")):
                continue
            send = getattr(ann, method)
            found = errors(send(address(ann, path), {name: WRONG}))
            pointers = [error.get("pointer", "") for error in found]
            assert [each for each in pointers if f"{each}/".startswith(f"#/{name}/")], (path, name)
            assert_places({"errors": found}, {name: WRONG})
            fields += 1
        for name in schema.get("required", ()):
            found = errors(getattr(ann, method)(address(ann, path), {}))
            assert f"#/{name}" in [error.get("pointer") for error in found], (path, name, found)
        if "properties" in schema:
            found = errors(getattr(ann, method)(address(ann, path), {"a/b~c é": 1}))
            extra = [error for error in found if error["pointer"] == "#/a~1b~0c%20%C3%A9"]
            assert extra or schema.get("additionalProperties") is not False, (path, found)
    assert fields > 60


def test_every_parameter_of_the_query_is_named(ann: Program) -> None:
    names = 0
    for method, path, operation in operations("get", "post"):
        for parameter in operation.get("parameters", ()):
            kinds = str(parameter.get("schema"))
            if parameter.get("in") != "query" or not re.search("integer|boolean|number", kinds):
                continue
            answer = getattr(ann, method)(f"{address(ann, path)}?{parameter['name']}=never")
            assert parameter["name"] in [error.get("parameter") for error in errors(answer)]
            names += 1
    assert names > 25


@pytest.mark.parametrize("path", ["/jobs", "/feeds", "/inbox", "/photos", "/imports"])
def test_a_cursor_is_a_parameter(ann: Program, path: str) -> None:
    (error,) = errors(ann.get(path, cursor="never"))
    assert error["parameter"] == "cursor"


def test_a_cursor_in_a_body_is_a_field() -> None:
    body = {"handler": "test.requested", "cursor": "never"}
    (error,) = errors(operator().post("/jobs/replay", body))
    assert error["pointer"] == "#/cursor"


def test_a_list_in_a_query_is_named_by_its_parameter(ann: Program) -> None:
    (error,) = errors(ann.get("/events", types="never"))
    assert error["parameter"] == "types"


def test_a_header_is_named(ann: Program) -> None:
    (error,) = errors(send(ann, key="x" * 256))
    assert error["header"] == "Idempotency-Key"
    (error,) = errors(ann.post("/feeds", {}, headers={"Idempotency-Key": "two words"}))
    assert error["header"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"payload": {"title": 5}}, "#/payload/title"),
        ({"payload": {"title": "March", "a/b": "\0"}}, "#/payload/a~1b"),
        ({"payload": {"\0": 1}}, "#/payload"),
        ({"lane": "\ud800"}, "#/lane"),
    ],
)
def test_what_is_deep_in_a_body_is_pointed_at(body: Any, place: str) -> None:
    (error,) = errors(send(operator(), **body))
    assert error["pointer"] == place
    assert_places({"errors": [error]}, {"payload": {}} | body)


def test_the_payload_of_an_event_is_pointed_at(ann: Program) -> None:
    def record(body: Any, kind: str) -> list[str]:
        answer = ann.post("/events", body, content_type=f"application/cloudevents{kind}+json")
        found = [error["pointer"] for error in problem(answer, 422, "invalid")["errors"]]
        assert_places({"errors": [{"pointer": place} for place in found]}, body)
        return found

    wrong = EVENT | {"type": "stage.premiere", "data": {"title": 5}}
    assert record(wrong, "") == ["#/data/title"]
    assert record([EVENT | {"type": "stage.gala", "data": {}}, wrong], "-batch") == [
        "#/1/data/title"
    ]


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ([], "#"),
        (["a", 0, "b"], "#/a/0/b"),
        (["a/b", "m~n", "c%d", "i\\j"], "#/a~1b/m~0n/c%25d/i%5Cj"),
        (['k"l', " ", "é", ""], "#/k%22l/%20/%C3%A9/"),
    ],
)  # fmt: skip
def test_a_pointer_is_written_as_in_rfc_6901(location: list[Any], text: str) -> None:
    assert pointer(location) == text
    assert tokens(text) == [str(part) for part in location]
