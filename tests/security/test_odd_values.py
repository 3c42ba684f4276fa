"""What odd values got in the API: internal errors. Every parameter and every field of a body, in
turn, gets the extremes of every format; the answer is never 5xx. The short form sends every sixth
request of each operation, from another one on each time, so that each value is sent often."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.test import Client

from tailrace.db.pagination import encode
from tailrace.web.api.site import api
from tests.web.test_permissions import BODIES, World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

TIMES = ("2026-10-01T12:00:00+16:00", "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00")
TEXTS = (
    "", "a\0b", "\ud800", "x" * 5000, "a@" + "b" * 300, "http://[::1", "https://a:99999/", "𝟙𝟚",
)  # fmt: skip
NUMBERS = (-1, 2**63, -(2**63) - 1, 10**400)
OTHERS: tuple[Any, ...] = (None, [], {"\0": "\0"})
CURSORS = tuple(
    encode(time, 1) for time in (*TIMES, 2**63 - 1, -(2**63), -(10**17), 253402300800 * 10**6)
)
POSITIONS = tuple(f"{number}.{number}" for number in (2**63, 10**30))


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def schema_of(operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = next(iter(content.values()), {}).get("schema", {})
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return dict(api.get_openapi_schema()["components"]["schemas"][name])
    return dict(schema)


def odd_queries(operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        if parameter.get("in") == "query":  # one that is shared is a header
            number = parameter["schema"].get("type") in ("integer", "number", "boolean")
            texts: tuple[str, ...] = tuple(map(str, NUMBERS)) if number else TIMES
            texts += TEXTS
            if parameter["name"] in ("cursor", "after"):
                texts += CURSORS + POSITIONS
            for text in texts:
                yield urlencode({parameter["name"]: text}, errors="surrogatepass")


def odd_bodies(base: Any, operation: dict[str, Any]) -> Iterator[Any]:
    if "requestBody" not in operation:
        return
    for name in schema_of(operation).get("properties", ()):
        for value in (*TIMES, *TEXTS, *NUMBERS, *OTHERS):
            yield base | {name: value}
    yield from OTHERS


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_no_value_gets_an_internal_error(settings: Any, step: int) -> None:
    settings.API_RATE = settings.API_BURST = 1_000_000
    world = World()
    world.people["owner"].is_superuser = True
    world.people["owner"].save()
    client = Client(
        raise_request_exception=False, headers={"Authorization": f"Bearer {world.tokens['owner']}"}
    )
    wrong, count = [], 0
    for first, (method, path, operation) in enumerate(operations()):
        pattern = path.replace("{id}", "<int:id>").replace("{delivery}", "<int:delivery>")
        address, sent = world.path(pattern), BODIES.get(f"{method} {pattern}", {})
        kind = sent.get("content_type", "application/json")
        base = json.loads(sent.get("text", "{}"))
        requests = [(f"{address}?{query}", base) for query in odd_queries(operation)]
        requests += [(address, body) for body in odd_bodies(base, operation)]
        requests = requests[first % step :: step]
        for url, body in requests:
            with transaction.atomic():
                answer = client.generic(method, url, data=json.dumps(body), content_type=kind)
                transaction.set_rollback(True)
            if answer.status_code >= 500:
                wrong.append((method, url[-80:], str(body)[:200], answer.status_code))
        count += len(requests)
    assert count > 500
    assert wrong == []
