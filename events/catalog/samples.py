"""Create a valid sample of each event type, for documentation and for tests of webhook receivers. A
field's value is its first example, else its default if that is not empty, else made from its JSON
schema and its name."""

from datetime import UTC, datetime
from typing import Any

from tailrace.events.publish import Recorded
from tailrace.events.types import EventType

AT = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)
"""The time of all samples."""
MAX_DEPTH = 6
TEXTS = {
    "date-time": "2026-10-01T12:00:00Z",
    "date": "2026-10-01",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.org",
    "uri": "https://example.org/",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "ipv4": "192.0.2.1",
    "binary": "c2FtcGxl",
}
NAMES = {
    **dict.fromkeys(("author", "sender", "user", "username", "who"), "ann"),
    **dict.fromkeys(("commenter", "member", "reviewer"), "bob"),
    **dict.fromkeys(("link", "url"), TEXTS["uri"]),
    "address": TEXTS["ipv4"],
    "arch": "x86_64",
    "group": "release-team",
    "host": "example.org",
    "package": "hello",
    "project": "devel:tools",
    "repository": "standard",
    "scope": "events:read",
    "title": "A title",
    "when": TEXTS["date-time"],
}
"""Texts for fields with these names. For other fields, the text is the name of the field."""


def sample_event(event_type: type[EventType]) -> Recorded:
    """Return a sample event of this type. It is not recorded and has the id 0."""
    payload = sample_payload(event_type)
    return Recorded(
        id=0,
        type=event_type.name,
        source="sample",
        source_id="sample",
        subject=event_type.subject(payload),
        raw_payload=payload,
        occurred_at=AT,
        recorded_at=AT,
        actor="",
        cause_id=None,
        trace_parent="",
        problem="",
    )


def sample_payload(event_type: type[EventType]) -> dict[str, Any]:
    """Return a sample payload of this type, in the JSON form in which events are stored."""
    schema = event_type.Payload.model_json_schema()
    raw = _value("", schema, schema.get("$defs", {}), 0)
    model = event_type.load(raw)
    stored: dict[str, Any] = model.model_dump(
        mode="json", round_trip=True, exclude_unset=not event_type.store_defaults
    )
    return stored


def _value(name: str, schema: dict[str, Any], defs: dict[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]] | {**schema, "$ref": None}
        schema.pop("$ref")
    if examples := schema.get("examples"):
        return examples[0]
    for key in ("const", "default"):
        if schema.get(key) not in (None, "", [], {}):
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if options := schema.get(key):
            real = [option for option in options if option.get("type") != "null"]
            return _value(name, (real or options)[0], defs, depth)
    return _value_of_type(name, schema, defs, depth)


def _value_of_type(name: str, schema: dict[str, Any], defs: dict[str, Any], depth: int) -> Any:
    match schema.get("type"):
        case "object":
            return _object(schema, defs, depth)
        case "array":
            return _array(name, schema, defs, depth)
        case "integer" | "number" as kind:
            return _number(schema, kind)
        case "boolean":
            return True
        case "null":
            return None
    return _text(name, schema)


def _object(schema: dict[str, Any], defs: dict[str, Any], depth: int) -> dict[str, Any]:
    """Return an object with all fields in the top two levels, and only required fields below."""
    required = set(schema.get("required", ()))
    return {
        name: _value(name, field, defs, depth + 1)
        for name, field in schema.get("properties", {}).items()
        if depth < MAX_DEPTH and (depth < 2 or name in required)
    }


def _array(name: str, schema: dict[str, Any], defs: dict[str, Any], depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [_value(name, item, defs, depth + 1) for item in schema["prefixItems"]]
    items = schema.get("items") or {}
    count = max(schema.get("minItems", 0), int(depth < MAX_DEPTH and schema.get("maxItems") != 0))
    return [_value(name.removesuffix("s"), items, defs, depth + 1) for _ in range(count)]


def _number(schema: dict[str, Any], kind: str) -> float:
    """Return 1, or the nearest number within the bounds."""
    step = 1.0 if kind == "integer" else 0.5
    low = schema.get("minimum", schema.get("exclusiveMinimum", -step) + step)
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(low, 1) + step) - step)
    number = min(max(1, low), high)
    return int(number) if kind == "integer" else number


def _text(name: str, schema: dict[str, Any]) -> str:
    plain = NAMES.get(name) or name.replace("_", "-") or "text"
    text = TEXTS.get(schema.get("format", ""), plain)
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", 1000)
    return text.ljust(shortest, "x")[:longest]
