"""The OpenAPI document: responses to generated requests fit it."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from jobs.models import Job
from net.encryption import encrypt
from net.signing import new_secret
from subscriptions.channels.rss.feeds import make_feed
from subscriptions.channels.web import inbox
from subscriptions.channels.webhook import endpoints
from subscriptions.models import Block, Delivery, Endpoint, InboxItem
from tests.owned_objects import of_all_domains
from tests.sandbox.handlers import Requested
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.web.jobs.requesting import OPERATOR
from tests.web.program import Program, program
from web.api.waiting import waiting

pytestmark = pytest.mark.django_db

schema = schemathesis.openapi.from_wsgi("/api/openapi.json", WSGIHandler())


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


@pytest.fixture
def ann(settings) -> Program:
    """A program that may do everything, and has something of each kind."""
    settings.API_RATE = settings.API_BURST = 1_000_000
    settings.USER_RATE = settings.USER_BURST = 1_000_000
    result = program(
        "ann",
        may=(
            "events.view_event", "events.add_event", "events.view_payload",
            "subscriptions.view_notification", *OPERATOR,
        ),
    )  # fmt: skip
    assign_role(FIRST, result.user)
    result.ids = _something_of_each(result.user)
    return result


def _something_of_each(user: User) -> dict[str, int]:
    """Create one object of each kind and return their ids by the word before them in a URL."""
    event = publish_event()
    inbox.put(event, user=user, group=None, role=FIRST)
    endpoint = Endpoint.objects.create(
        user=user, url="https://[::1]:1/", secret=encrypt(new_secret())
    )
    delivery = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_1", attempt=1, milliseconds=1, outcome="failed"
    )
    return {
        "events": event.id,
        "jobs": Job.objects.get(event=event.id, handler="subscriptions.notify").pk,
        "subscriptions": subscribe(user=user).pk,
        "blocks": Block.objects.create(user=user, blocked=person("bob")).pk,
        "inbox": InboxItem.objects.get(user=user).pk,
        "feeds": make_feed(user)[0].pk,
        "endpoints": endpoint.pk,
        "deliveries": delivery.pk,
        "tests": endpoints.send_test(endpoint),
        **of_all_domains(user),
    }


def _make_real(case: Any, ids: dict[str, int]) -> None:
    """Let every second valid request use ids and types that exist."""
    meta = case.meta
    if not meta.generation.mode.is_positive or len(str(case.path_parameters)) % 2:
        return
    words = case.path.strip("/").split("/")
    for word, after in pairwise(words):
        if after.startswith("{"):
            case.path_parameters[after.strip("{}")] = ids[word]
    if isinstance(case.body, dict) and "event_type" in case.body:
        case.body |= {"event_type": "stage.premiere", "role": FIRST, "channel": "web"}
    if isinstance(case.body, dict) and "handler" in case.body:
        case.body |= {"handler": Requested.name, "payload": {"title": "March"}}
    if isinstance(case.body, dict) and "specversion" in case.body:
        case.body |= {"type": "stage.premiere", "data": {"title": "x"}}


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_fits_the_document(case: Any, ann: Program) -> None:
    """No 5xx, documented statuses, content types and bodies; invalid requests are refused.

    A valid request may be refused too, because its names have to exist. In a form all values are
    texts, so one of another type is a text as valid as any.
    """
    _make_real(case, ann.ids)
    excluded = [positive_data_acceptance]
    if case.media_type == "multipart/form-data":
        excluded.append(negative_data_rejection)
    case.call_and_validate(
        headers={"Authorization": f"Bearer {ann.text}"}, excluded_checks=excluded
    )


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
    assert "permission `events.add_event`" in record["description"]
    assert set(record["requestBody"]["content"]) == {
        "application/cloudevents+json", "application/cloudevents-batch+json", "application/json",
    }  # fmt: skip
    assert record["responses"]["429"] == {"$ref": "#/components/responses/Problem"}


def test_the_docs_page_loads_nothing_from_other_sites(client) -> None:
    answer = client.get("/api/docs")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    page = answer.content.decode()
    assert "http://" not in page
    assert "https://" not in page
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(addresses) >= 3
    for address in addresses:
        assert client.get(address).status_code == 200, address
