"""manage.py event_catalog: all event types as one AsyncAPI 3 document."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.types import all_types


def catalog(*args: str) -> Any:
    out = StringIO()
    call_subcommand("event_catalog", *args, stdout=out)
    return json.loads(out.getvalue())


def resolve(document: Any, ref: str) -> Any:
    for part in ref.removeprefix("#/").split("/"):
        document = document[part]
    return document


def test_every_type_has_a_channel_a_message_and_an_operation() -> None:
    document = catalog()
    names = {event_type.name for event_type in all_types()}
    assert document["asyncapi"] == "3.0.0"
    assert names
    assert set(document["channels"]) == set(document["components"]["messages"]) == names
    assert set(document["operations"]) == {f"on.{name}" for name in names}


def test_every_reference_leads_somewhere() -> None:
    document = catalog()

    def refs(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [ref for value in node.values() for ref in refs(value)]
        if isinstance(node, list):
            return [ref for value in node for ref in refs(value)]
        return []

    references = refs(document)
    assert references
    for ref in references:
        assert isinstance(resolve(document, ref), dict), ref


def test_a_message_carries_the_json_schema_of_its_payload() -> None:
    message = catalog()["components"]["messages"]["events.quarantined"]
    assert message["payload"]["type"] == "object"
    assert set(message["payload"]["required"]) == {"type", "reason"}


def test_one_type_alone_is_its_json_schema() -> None:
    assert catalog("events.quarantined")["properties"].keys() == {"type", "payload", "reason"}


def test_an_unknown_type_is_named_with_a_suggestion() -> None:
    with pytest.raises(
        CommandError, match=r"'events.quarantine'; did you mean 'events.quarantined'"
    ):
        catalog("events.quarantine")
