"""The examples of the API's documentation are true: each request is sent, and its answer compared.

With RECORD_EXAMPLES=1 the answers are written into the files: write the request into an app's
`examples.json`, by the id of the operation (`query`, `body`, `content_type`), and run this.
"""

import json
import os
import re
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.http import HttpResponse

from tailrace.environment.discovery import import_modules
from tailrace.web.api.description.examples import examples_of, file_of
from tailrace.web.api.site import api
from tests.web.example_world import example_world
from tests.web.program import Program

pytestmark = pytest.mark.django_db
RECORD = os.environ.get("RECORD_EXAMPLES") == "1"
TIME = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:\d\d)?)?")
SECRETS = [
    (re.compile(r"whsec_[\w+/=]+"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    (re.compile(r"/feeds/me/[\w:-]+"), "/feeds/me/4f9lV0mXk2dJ7RZb"),
]
IDS = re.compile(r"(^|_)(id|ids|job|event|record|item|endpoint|port|delivery|milliseconds|bytes)$")


@pytest.fixture
def ann(settings: Any) -> Program:
    return example_world(settings)


def operations() -> Iterator[tuple[str, str, str]]:
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, details in methods.items():
            yield details["operationId"], method.upper(), path


def send(ann: Program, id: str, method: str, path: str, example: Any) -> tuple[Any, HttpResponse]:
    """Send the example with ids that exist, and undo what it did; return the ids and the answer."""
    given = dict(_ids(ann, id, path))
    address = path.format_map(given)
    if example.get("query"):
        address += f"?{urlencode(example['query'], doseq=True)}"
    kind = example.get("content_type", "application/json")
    data = json.dumps(example["body"]) if "body" in example else ""
    with transaction.atomic():
        answer = ann.client.generic(method, address, data=data, content_type=kind)
        transaction.set_rollback(True)
    return given, answer


def _ids(ann: Program, id: str, path: str) -> Iterator[tuple[str, Any]]:
    words = path.split("/")
    for before, word in pairwise(words):
        if word.startswith("{"):
            name = word.strip("{}")
            yield name, ann.ids.get(id, ann.ids[before]) if name == "id" else ann.ids[before]


def shown(value: Any) -> Any:
    """Return an answer as it is documented: without secrets, and lists by their first item."""
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value[:1]]
    if isinstance(value, str):
        return reduce(lambda text, secret: secret[0].sub(secret[1], text), SECRETS, value)
    return value


def comparable(value: Any, key: str = "") -> Any:
    """Return an answer without what differs from run to run: ids, times, places in a list."""
    if isinstance(value, dict):
        return {name: comparable(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [comparable(item, key) for item in value]
    if isinstance(value, str):
        if key in ("next", "version", "delivery_id", "message_id", "source_id"):
            return "text"
        return re.sub(r"\d+", "0", TIME.sub("TIME", value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" if IDS.search(key) or isinstance(value, float) else value
    return value


@pytest.mark.slow
def test_each_example_is_answered_as_documented(ann: Program) -> None:
    files = {module: examples_of(module) for module in import_modules("api")}
    examples = {id: each for group in files.values() for id, each in group.items()}
    wrong, seen = {}, set()
    for id, method, path in operations():
        example = examples.get(id, {})
        if not (example or RECORD):
            continue
        seen.add(id)
        given, answer = send(ann, id, method, path, example)
        kind = answer.get("Content-Type", "")
        is_json = bool(answer.getvalue()) and kind.startswith("application/json")
        body = shown(json.loads(answer.content)) if is_json and answer.status_code < 300 else None
        if RECORD and answer.status_code < 300:
            owner = next(module for module in files if _module(id).startswith(module.__name__))
            recorded = {"path": given, "status": answer.status_code, "answer": body}
            files[owner][id] = example | {
                key: each for key, each in recorded.items() if each not in (None, {})
            }
            text = json.dumps(files[owner], indent=1, ensure_ascii=False, default=str)
            file_of(owner).write_text(text + "\n")
        elif (answer.status_code, comparable(body)) != (
            example.get("status"), comparable(example.get("answer")),
        ):  # fmt: skip
            wrong[id] = (answer.status_code, body or answer.content, example.get("answer"))
    assert not wrong, "\n".join(f"{id}: {each}" for id, each in sorted(wrong.items()))
    assert set(examples) <= seen, "an example of no operation"
    assert len(seen) > 100


def _module(id: str) -> str:
    """Return the module of the operation with this id."""
    for router in api._get_bound_routers():
        for view in router.path_operations.values():
            for operation in view.operations:
                if api.get_openapi_operation_id(operation) == id:
                    return operation.view_func.__module__
    raise AssertionError(id)
