"""The OpenAPI document: responses to generated requests fit it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test  # private: see below
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tailrace.web.api.requests.waiting import waiting
from tests.sandbox.handlers import Requested
from tests.subscriptions.sample_domain import FIRST, assign_role
from tests.web.everything import owner_of_everything, without_limits
from tests.web.places import assert_places
from tests.web.program import Program

pytestmark = pytest.mark.django_db

schema = schemathesis.openapi.from_wsgi("/api/openapi.json", WSGIHandler())
METHODS = {"get", "post", "put", "patch", "delete"}
OPERATIONS = [
    (method.upper(), path)
    for path, operations in schema.raw_schema["paths"].items()
    for method in operations.keys() & METHODS
]


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """Leave the test's connection open after a request, as Django's test client does."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "places", 0)


@pytest.fixture(scope="module")
def owner(rows_of_module: None) -> Program:
    return owner_of_everything()


@pytest.fixture
def ann(settings, owner: Program) -> Program:
    """The same for all tests of this file: what another test changed is rolled back."""
    without_limits(settings)
    assign_role(FIRST, owner.user)  # roles of the sandbox end with each test
    return owner


def _make_real(case: Any, ids: dict[str, int]) -> None:
    """Let every second valid request use ids and types that exist."""
    meta = case.meta
    if not meta.generation.mode.is_positive or len(str(case.path_parameters)) % 2:
        return
    words = case.path.strip("/").split("/")
    for word, after in pairwise(words):
        if after.startswith("{"):
            case.path_parameters[after.strip("{}")] = ids[word]
    if isinstance(case.body, dict) and "role" in case.body:
        case.body |= {"event_type": "stage.premiere", "role": FIRST, "channel": "web"}
    if isinstance(case.body, dict) and case.path.endswith("/test"):
        case.body |= {"event_type": "stage.premiere"}
    if isinstance(case.body, dict) and "handler" in case.body:
        case.body |= {"handler": Requested.name, "payload": {"title": "March"}}
    if isinstance(case.body, dict) and "specversion" in case.body:
        case.body |= {"type": "stage.premiere", "data": {"title": "x"}}


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("operation", sorted(OPERATIONS), ids=" ".join)
def test_every_response_fits_the_document(
    operation: tuple[str, str], every: bool, ann: Program
) -> None:
    """No 5xx, documented statuses, content types and bodies; invalid requests are refused: in the
    long form all that are made up, otherwise the first, every eighth valid and every sixteenth
    invalid one.

    `schema.parametrize()` would make up the requests of all operations while tests are collected,
    in each process of the tests: a third of what collection takes. So this test calls the private
    function that `parametrize` calls, in the version that requirements/dev.txt pins.
    """
    method, path = operation
    first: dict[Any, int] = {}

    @settings(
        max_examples=12 if every else 1,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Any) -> None:
        mode, number = case.meta.generation.mode, _number_of(case)
        is_first = first.setdefault(mode, number) == number
        if every or is_first or number % (8 if mode.is_positive else 16) == 0:
            _assert_the_response_fits(case, ann)

    build_operation_test(
        config=schema.config,
        operation=schema[path][method],
        test_func=send,
        given_kwargs={},
        feedback=FeedbackSources(),
    )()
    assert first, "no request was sent"


def _number_of(case: Any) -> int:
    """Return a number that is the same for the same request, and spread evenly."""
    values = (case.path_parameters, case.query, case.headers, case.cookies, case.body)
    return crc32(repr(values).encode())


def _assert_the_response_fits(case: Any, ann: Program) -> None:
    """Send `case` and check the response.

    A valid request may be refused too, because its names have to exist. In a form all values are
    texts, so one of another type is a text as valid as any.
    """
    _make_real(case, ann.ids)
    excluded = [positive_data_acceptance]
    if case.media_type == "multipart/form-data":
        excluded.append(negative_data_rejection)
    answer = case.call_and_validate(
        headers={"Authorization": f"Bearer {ann.text}"}, excluded_checks=excluded
    )
    assert answer.status_code >= 400 or "ratelimit" in answer.headers
    if answer.status_code == 422:  # what is no form is sent as an empty one
        is_form = case.media_type == "multipart/form-data"
        body = {} if is_form and not isinstance(case.body, dict) else case.body
        assert_places(answer.json(), body)


def test_the_document_names_rights_and_problems(client) -> None:
    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    ids = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(ids) == len(set(ids))
    record = document["paths"]["/api/events"]["post"]
    assert record["security"][0] == {"token": ["events:write"]}
    assert "permission `tailrace_events.add_event`" in record["description"]
    assert set(record["requestBody"]["content"]) == {
        "application/cloudevents+json", "application/cloudevents-batch+json", "application/json",
    }  # fmt: skip
    assert record["responses"]["429"] == {"$ref": "#/components/responses/Problem"}
