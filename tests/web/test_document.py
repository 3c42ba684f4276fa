"""The OpenAPI document itself: valid, and true about where it is and what it sends to others."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from tailrace.domains.builds.destinations.base import Message
from tailrace.domains.builds.destinations.webhook import WebhookBus
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.webhook.message import (
    body_of,
    body_of_challenge,
    body_of_test,
    request_to,
)
from tailrace.subscriptions.channels.webhook.operations.filters import sent_types
from tailrace.subscriptions.models import Endpoint
from tailrace.web.api.description.openapi import Document
from tailrace.web.api.site import api
from tests.builds.destinations.kit import SECRET
from tests.subscriptions.sample_domain import publish_event
from tests.web.places import follow

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema()))
    return result


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    broken = document | {"webhooks": {"x": {"post": {"parameters": "none"}}}}
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV31SpecValidator(broken).validate()


def test_each_schema_that_is_referred_to_is_there(document: dict[str, Any]) -> None:
    references = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)))
    assert len(references) > 100
    for reference in references:
        follow(document, reference.split("/"))


def test_the_document_names_this_server(document: dict[str, Any], settings: Any) -> None:
    assert document["servers"] == [{"url": settings.PUBLIC_URL, "description": "this server"}]
    path = next(iter(document["paths"]))
    assert path.startswith("/api/")
    assert Client().get("/api/openapi.json").json()["servers"] == document["servers"]


def test_two_schemas_of_one_name_are_refused() -> None:
    document = Document(api, "", [], {})
    document.add_schema_definitions({"New": {"type": "string"}})
    document.add_schema_definitions({"New": {"type": "string"}})
    with pytest.raises(ValueError, match="two schemas of the API are called New"):
        document.add_schema_definitions({"New": {"type": "integer"}})


def errors(document: dict[str, Any], name: str, body: bytes) -> list[str]:
    """Return why a body does not fit the schema of this message."""
    return [error.message for error in _errors(document, name, json.loads(body))]


def _errors(document: dict[str, Any], name: str, body: Any) -> Iterator[Any]:
    post = document["webhooks"][name]["post"]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]}).iter_errors(body)


def headers(document: dict[str, Any], name: str) -> set[str]:
    return {parameter["name"] for parameter in document["webhooks"][name]["post"]["parameters"]}


def test_each_kind_of_message_has_an_entry_and_a_true_example(document: dict[str, Any]) -> None:
    names = {"tailrace.test", "tailrace.challenge", "builds.bus"}
    assert set(document["webhooks"]) == names | {cls.name for cls in sent_types()}
    for name, item in document["webhooks"].items():
        example = item["post"]["requestBody"]["content"]["application/json"]["example"]
        assert list(_errors(document, name, example)) == [], name
        assert name == "builds.bus" or list(_errors(document, name, {**example, "type": 5}))


def test_an_endpoint_is_sent_what_the_document_says(document: dict[str, Any]) -> None:
    event = publish_event()
    sent = body_of(event, "stage_owner")
    assert errors(document, event.type, sent) == []
    wrong = json.loads(sent)
    wrong["data"]["payload"]["title"] = 5
    assert errors(document, event.type, json.dumps(wrong).encode())
    assert errors(document, "tailrace.test", body_of_test()) == []
    assert errors(document, "tailrace.challenge", body_of_challenge("text")) == []
    endpoint = Endpoint(url="https://example.org/", secret=encrypt(new_secret()))
    request = request_to(endpoint, "msg_1", sent)
    assert set(request.headers) - {"content-type"} == headers(document, event.type)


def test_a_bus_is_sent_what_the_document_says(document: dict[str, Any], settings: Any) -> None:
    settings.BUS_WEBHOOK_SECRET = SECRET
    message = Message(1, "opensuse.obs.package.commit", b"{}")
    sent = WebhookBus("hook", "https://example.org/").headers(message)
    assert set(sent) - {"content-type", "user-agent"} == headers(document, "builds.bus")
