"""The OpenAPI document: what it promises is what happens, whatever is sent."""

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
from schemathesis.specs.openapi.checks import positive_data_acceptance

from subscriptions import inbox
from subscriptions.api import events
from subscriptions.feeds import make_feed
from subscriptions.models import Block, Delivery, Endpoint, InboxItem
from subscriptions.sealing import seal
from subscriptions.signing import new_secret
from tests.stock import of_domains
from tests.subscriptions.api.kit import Program, program
from tests.subscriptions.stage import FIRST, happen, hold, person, subscribe

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
def _nobody_waits() -> Iterator[None]:
    """Leave no place to wait for events."""
    places = events._waiting._value
    for _ in range(places):
        events._waiting.acquire()
    yield
    events._waiting.release(places)


@pytest.fixture
def ann(settings) -> Program:
    """A program that may do everything, and has something of each kind."""
    settings.API_RATE = settings.API_BURST = 1_000_000
    found = program(
        "ann",
        may=(
            "events.view_event", "events.add_event", "events.view_payload",
            "subscriptions.view_notification",
        ),
    )  # fmt: skip
    hold(FIRST, found.user)
    found.ids = _something_of_each(found.user)
    return found


def _something_of_each(user: User) -> dict[str, int]:
    """Make it, and return its id by the word of the address after which that stands."""
    event = happen()
    inbox.put(event, user=user, group=None, role=FIRST)
    endpoint = Endpoint.objects.create(user=user, url="https://[::1]:1/", secret=seal(new_secret()))
    delivery = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_1", attempt=1, milliseconds=1, outcome="failed"
    )
    return {
        "events": event.id,
        "subscriptions": subscribe(user=user).pk,
        "blocks": Block.objects.create(user=user, blocked=person("bob")).pk,
        "inbox": InboxItem.objects.get(user=user).pk,
        "feeds": make_feed(user)[0].pk,
        "endpoints": endpoint.pk,
        "deliveries": delivery.pk,
        **of_domains(user),
    }


def _make_real(case: Any, ids: dict[str, int]) -> None:
    """Let a valid request speak of what there is, every other time."""
    meta = case.meta
    if not meta.generation.mode.is_positive or len(str(case.path_parameters)) % 2:
        return
    words = case.path.strip("/").split("/")
    for word, after in pairwise(words):
        if after.startswith("{"):
            case.path_parameters[after.strip("{}")] = ids[word]
    if isinstance(case.body, dict) and "event_type" in case.body:
        case.body |= {"event_type": "stage.premiere", "role": FIRST, "channel": "web"}
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
def test_every_answer_is_as_the_document_says(case: Any, ann: Program) -> None:
    """No 5xx, and statuses, content types and bodies as written; what is not valid is refused.

    Not that all is taken which is valid by its form: names have to be those of something.
    """
    _make_real(case, ann.ids)
    case.call_and_validate(
        headers={"Authorization": f"Bearer {ann.text}"}, excluded_checks=[positive_data_acceptance]
    )


def test_the_document_names_rights_and_problems(client) -> None:
    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    ids = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids))
    record = document["paths"]["/api/events"]["post"]
    assert record["security"][0] == {"token": ["events:write"]}
    assert "permission `events.add_event`" in record["description"]
    assert set(record["requestBody"]["content"]) == {
        "application/cloudevents+json", "application/cloudevents-batch+json", "application/json",
    }  # fmt: skip
    assert record["responses"]["429"] == {"$ref": "#/components/responses/Problem"}


def test_its_page_fetches_nothing_from_elsewhere(client) -> None:
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
