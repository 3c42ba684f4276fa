"""Form fields for a payload, built from the JSON Schema of its model. Values without a field of
their own, such as lists, are entered as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.html import escape
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from tailrace.jobs.platform.admin.theme import Checkbox, Select, Textarea, TextInput

Schema = Mapping[str, Any]
WHOLE = "payload"
"""The name of the field if the whole payload is entered as JSON."""
PREFIX = "payload-"
"""The prefix of the names of all other fields, so that they differ from the job's options."""
LONG = 120
"""Texts that may be longer than this get a field of several lines."""


def fields_of(model: type[BaseModel]) -> dict[str, forms.Field]:
    """Return the form fields of a payload model, by name."""
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema:
        schema = {}
    properties = schema.get("properties", {})
    if not properties and schema.get("additionalProperties", True):
        return {WHOLE: _json_field({}, required=False)}
    required, definitions = schema.get("required", []), schema.get("$defs", {})
    return {
        PREFIX + name: _field(name, _resolved(part, definitions), name in required)
        for name, part in properties.items()
    }


def fill(fields: Mapping[str, forms.Field], payload: Any) -> None:
    if WHOLE in fields:
        fields[WHOLE].initial = payload
        return
    for name, value in (payload if isinstance(payload, dict) else {}).items():
        if field := fields.get(PREFIX + name):
            field.initial = json.dumps(value) if isinstance(field, forms.ChoiceField) else value


def payload_of(fields: Mapping[str, forms.Field], cleaned: Mapping[str, Any]) -> Any:
    """Return the entered payload, without empty values, which get their defaults."""
    if WHOLE in fields:
        return cleaned.get(WHOLE) or {}
    values = {
        name.removeprefix(PREFIX): cleaned.get(name) for name in fields if name.startswith(PREFIX)
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """Return the schema with its reference resolved; a nullable type becomes the type itself."""
    options = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
    if len(options) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _resolved({**options[0], **rest, "nullable": True}, definitions)
    if name := str(schema.get("$ref", "")).removeprefix("#/$defs/"):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**definitions.get(name, {}), **rest}
    return schema


def _field(name: str, schema: Schema, required: bool) -> forms.Field:
    field = _of_type(schema, required)
    field.label = name
    field.help_text = escape(schema.get("description", ""))
    default = schema.get("default")
    if default is not None and not isinstance(field, forms.JSONField):
        field.initial = json.dumps(default) if isinstance(field, forms.ChoiceField) else default
    return field


def _of_type(schema: Schema, required: bool) -> forms.Field:
    match schema:
        case {"enum": [*values]}:
            return _choice_field(values, required)
        case {"type": "boolean"} if required or isinstance(schema.get("default"), bool):
            return forms.BooleanField(required=False, widget=Checkbox())
        case {"type": "boolean"}:
            return _choice_field([True, False], required)
        case {"type": "integer"}:
            return forms.IntegerField(required=required, widget=_input("number"))
        case {"type": "number"}:
            return forms.FloatField(required=required, widget=_input("number", step="any"))
        case {"type": "string", "format": "date"}:
            return forms.CharField(required=required, widget=_input("date"))
        case {"type": "string", "format": "date-time"}:
            widget = _input("text", placeholder="2026-10-01T12:00:00Z")
            return forms.CharField(required=required, widget=widget)
        case {"type": "string"} if schema.get("maxLength", 0) > LONG:
            widget = Textarea({"rows": 4})
            return forms.CharField(required=required, strip=False, widget=widget)
        case {"type": "string"}:
            return forms.CharField(required=required, strip=False, widget=_input("text"))
    return _json_field(schema, required)


def _input(kind: str, **attributes: str) -> forms.Widget:
    widget: forms.TextInput = TextInput(attributes)
    widget.input_type = kind
    return widget


def _choice_field(values: list[Any], required: bool) -> forms.Field:
    choices = [(json.dumps(value), _label(value)) for value in values]
    if not required:
        choices.insert(0, ("", "–"))
    return forms.TypedChoiceField(
        choices=choices,
        coerce=json.loads,
        empty_value=None,
        required=required,
        widget=Select(choices=choices),
    )


def _label(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _json_field(schema: Schema, required: bool) -> forms.Field:
    """Return a field for JSON; an empty list or object is a value."""
    field = forms.JSONField(required=required, widget=Textarea({"rows": 4, "spellcheck": "false"}))
    field.empty_values = [None, ""]
    field.initial = schema.get("default")
    return field
