"""The fields of a JSON Schema as a flat list, nested objects included."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

MAX_DEPTH = 3
"""Levels of nested objects that are shown."""
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "as {}",
}
LARGEST = 2**63 - 1
"""The bound of PostgreSQL's bigint. Bounds of this size are not shown."""


_CODE = re.compile("`([^`]+)`")


def prose(text: str) -> SafeString:
    """Return the text as one line of HTML, with text in backticks as `<code>`."""
    line = " ".join(text.split())
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(line)))  # noqa: S308


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    """For a nested field, with the name of the outer field: `event.title`."""
    kind: str
    """The type as readers see it, such as `list of text`."""
    required: bool
    about: SafeString
    source: str = ""
    """For a parameter: path, query or header."""


class Schemas:
    """The schemas of the document by name; resolves references to them."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def resolved(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema with its `$ref` and `allOf` replaced by their content. Keys of the
        schema itself, such as its description, take precedence."""
        whole = dict(schema)
        if name := str(whole.pop("$ref", "")).rpartition("/")[2]:
            whole = {**self.resolved(self._schemas[name]), **whole}
        for part in whole.pop("allOf", ()):
            whole = _merged(whole, self.resolved(part))
        return whole

    def fields(
        self, schema: Mapping[str, Any], prefix: str = "", depth: int = 0
    ) -> Iterator[Field]:
        """Yield the fields of an object, or of the objects in a list."""
        schema = self._object_in(schema)
        required = set(schema.get("required", ()))
        for name, raw in schema.get("properties", {}).items():
            field = self.resolved(raw)
            yield self.field(prefix + name, field, name in required)
            if depth + 1 < MAX_DEPTH:
                yield from self.fields(field, f"{prefix}{name}.", depth + 1)

    def field(
        self, name: str, schema: Mapping[str, Any], required: bool, source: str = ""
    ) -> Field:
        schema = self.resolved(schema)
        about = str(schema.get("description", ""))
        if facts := [*_default(schema), *_bounds(self._real(schema))]:
            about = f"{about} ({'; '.join(facts)})".strip() if about else "; ".join(facts)
        return Field(name, self.kind(schema), required, prose(about), source)

    def kind(self, schema: Mapping[str, Any]) -> str:
        """Return the type of a value as readers see it, such as `list of text`."""
        schema = self.resolved(schema)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return " or ".join(dict.fromkeys(self.kind(option) for option in options))
        if "const" in schema:
            return f"“{schema['const']}”"
        if "enum" in schema:
            return " or ".join(f"“{value}”" for value in schema["enum"])
        match schema.get("type"):
            case "array":
                return f"list of {self.kind(schema.get('items', {}))}"
            case "string":
                return _TEXTS.get(schema.get("format", ""), "text")
            case "boolean":
                return "true or false"
            case None:
                return "any value"
            case kind:
                return str(kind)

    def _object_in(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        schema = self._real(self.resolved(schema))
        return self._object_in(schema["items"]) if schema.get("type") == "array" else dict(schema)

    def _real(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema, or its only option that is not null."""
        options = [self.resolved(option) for option in schema.get("anyOf", ())]
        real = [option for option in options if option.get("type") != "null"]
        return real[0] if len(real) == 1 and not schema.get("properties") else dict(schema)


_TEXTS = {"date-time": "time", "date": "date", "binary": "file", "uri": "address"}


def _default(schema: Mapping[str, Any]) -> Iterator[str]:
    if (default := schema.get("default")) not in (None, "", [], {}):
        yield f"default: `{str(default).lower() if isinstance(default, bool) else default}`"


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, text in BOUNDS.items():
        value = schema.get(name)
        if name == "minLength" and value == 1:
            yield "not empty"
        elif value is not None and not (isinstance(value, int) and value >= LARGEST):
            yield text.format(f"`{value}`" if name == "pattern" else value)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return both schemas as one. Keys and fields of the first take precedence."""
    merged = {**second, **first}
    properties = dict(second.get("properties", {}))
    for name, field in first.get("properties", {}).items():
        properties[name] = _merged(field, properties.get(name, {}))
    if properties:
        merged["properties"] = properties
    merged["required"] = [*second.get("required", ()), *first.get("required", ())]
    return merged
