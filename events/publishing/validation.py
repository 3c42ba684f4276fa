"""Validate events before they are recorded."""

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any

from pydantic import BaseModel, ValidationError

from tailrace.db.times import in_utc
from tailrace.environment.conf import conf
from tailrace.environment.field_errors import FieldError, field_errors, hint
from tailrace.events.errors import InvalidPayload, PublishError
from tailrace.events.publishing.unknown_keys import refuse_unknown_keys
from tailrace.events.types import EventType, Quarantined, get_type

LIMITS = {"source": 200, "source_id": 500, "subject": 500, "actor": 200, "trace_parent": 100}
"""The maximum number of characters per field. Most of these fields are indexed."""
TOO_DEEP = "payload is nested too deeply"


@dataclass(frozen=True, slots=True)
class EventRow:
    type: str
    schema_version: int
    raw_payload: dict[str, Any]
    model: BaseModel | None
    """The payload as an instance of its Payload; None: not validated yet."""
    json: str
    """`raw_payload` as text."""
    source: str
    source_id: str
    subject: str
    occurred_at: datetime | None
    actor: str
    cause_id: int | None
    trace_parent: str
    problem: str


def validate(
    *,
    type: type[EventType] | str,
    payload: dict[str, Any] | BaseModel,
    subject: str | None,
    outside: bool,
    **envelope: Any,
) -> EventRow:
    """Return the row of an event. Raises PublishError if it is invalid; with `outside` it is
    quarantined instead, with the error as its `problem`."""
    name = type if isinstance(type, str) else type.name
    cleaned: Any = payload
    oddity = ""
    if outside:
        envelope = {key: _truncated(key, value) for key, value in envelope.items()}
        name = clean(name)[0]
        try:
            cleaned, changed = clean(payload)
        except RecursionError:
            return _quarantined(name, None, TOO_DEEP, subject, envelope)
        oddity = "characters that PostgreSQL cannot store were replaced" if changed else ""
    try:
        row = _validated(name, cleaned, subject, outside, envelope)
    except PublishError as error:
        if not outside:
            raise
        return _quarantined(name, cleaned, str(error), subject, envelope)
    if not outside:
        return row
    problems = [text for text in (get_type(name).problem(row.raw_payload), oddity) if text]
    return replace(row, problem="; ".join(problems))


def _validated(
    name: str,
    payload: dict[str, Any] | BaseModel,
    subject: str | None,
    outside: bool,
    envelope: dict[str, Any],
) -> EventRow:
    event_type = get_type(name)
    model, stored = _dump(event_type, payload)
    text = _json(name, stored)
    subject = event_type.subject(stored) if subject is None else subject
    row = EventRow(
        type=name,
        schema_version=event_type.schema_version,
        raw_payload=stored,
        model=model,
        json=text,
        subject=_truncated("subject", subject) if outside else subject,
        problem="",
        **envelope,
    )
    _check_envelope(name, row)
    return row


def _dump(
    event_type: type[EventType], payload: dict[str, Any] | BaseModel
) -> tuple[BaseModel, dict[str, Any]]:
    """Return the payload as an instance of its Payload, and as JSON to store."""
    given = payload if isinstance(payload, event_type.Payload) else None
    try:
        model = _validated_payload(event_type, payload) if given is None else given
        if not _is_finite(model):  # pydantic would convert infinity and NaN to null
            raise ValueError("it contains an infinite number or NaN")
        stored = model.model_dump(
            mode="json", round_trip=True, exclude_unset=not event_type.store_defaults
        )
        # A publisher may have changed the instance after its validation.
        return model if given is None else event_type.load(stored), stored
    except ValidationError as error:
        fields = [
            FieldError(("payload", *field.path), field.detail)
            for field in field_errors(error, payload, event_type.Payload)
        ]
        text = f"{event_type.name}: {describe(error, event_type.Payload)}"
        raise InvalidPayload(text, fields) from None
    except ValueError as error:
        raise InvalidPayload(f"{event_type.name}: payload is not JSON: {error}") from None


def _validated_payload(event_type: type[EventType], payload: Any) -> BaseModel:
    model = event_type.Payload.model_validate(payload)
    refuse_unknown_keys(model, payload)
    return model


def describe(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Describe up to five errors in one line: field, message, and the beginning of the value.

    If `model` is given, errors about unknown keys suggest the nearest known key.
    """
    return "; ".join(
        f"payload.{'.'.join(map(str, item['loc'])) or '(whole)'}: {item['msg']}{hint(model, item)}"
        f" (given: {_as_text(item['input'])[:80]!r})"
        for item in error.errors(include_url=False)[:5]
    )


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, deep nesting
        return f"a {type(value).__name__} that cannot be printed"


def _json(name: str, payload: dict[str, Any]) -> str:
    try:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # The JSON of a NUL and the JSON of a backslash before u0000 both contain \u0000: only
        # `clean` can distinguish them.
        suspect = "\\u0000" in text or _UNSTORABLE.search(text)
        unstorable = bool(suspect) and clean(payload)[1]
    except RecursionError:
        raise InvalidPayload(f"{name}: {TOO_DEEP}") from None
    except ValueError as error:  # an infinite number, or a number with thousands of digits
        raise InvalidPayload(f"{name}: payload is not JSON: {error}") from None
    if unstorable:
        raise InvalidPayload(
            f"{name}: payload has a NUL character or half a surrogate pair, which PostgreSQL"
            " cannot store; remove it before publishing"
        )
    size = len(text.encode())
    if size > conf.EVENTS_MAX_PAYLOAD_BYTES:
        raise InvalidPayload(
            f"{name}: payload is {size} bytes, more than EVENTS_MAX_PAYLOAD_BYTES"
            f" ({conf.EVENTS_MAX_PAYLOAD_BYTES}); publish the key of large content instead"
        )
    return text


def _check_envelope(name: str, row: EventRow) -> None:
    for key, limit in LIMITS.items():
        value = getattr(row, key)
        if len(value) > limit:
            raise _wrong_field(name, key, f"has {len(value)} characters; the maximum is {limit}")
        if clean(value)[1]:
            raise _wrong_field(name, key, "has a character that PostgreSQL cannot store")
    if row.occurred_at is not None:
        try:
            in_utc(row.occurred_at)
        except ValueError as error:
            when = row.occurred_at.isoformat()
            raise _wrong_field(name, "occurred_at", f"{when}: {error}") from None


def _wrong_field(name: str, field: str, detail: str) -> InvalidPayload:
    return InvalidPayload(f"{name}: {field} {detail}", [FieldError((field,), detail)])


def _quarantined(
    name: str, payload: Any, reason: str, subject: str | None, envelope: dict[str, Any]
) -> EventRow:
    quarantined = {
        "type": name[: LIMITS["source"]],
        "payload": _storable(payload),
        "reason": reason[:2000],
    }
    occurred_at = envelope["occurred_at"]
    try:
        occurred_at and in_utc(occurred_at)
    except ValueError:
        envelope = envelope | {"occurred_at": None}
    return EventRow(
        type=Quarantined.name,
        schema_version=Quarantined.schema_version,
        raw_payload=quarantined,
        model=None,
        json=json.dumps(quarantined, ensure_ascii=False),
        subject=_truncated("subject", clean(subject or "")[0]),
        problem=reason[:2000],
        **envelope,
    )


def _storable(payload: Any) -> Any:
    """Return the payload if it is JSON and not too large, or else the beginning of its text."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        if len(text.encode()) <= conf.EVENTS_MAX_PAYLOAD_BYTES:
            return payload
    except (TypeError, ValueError):
        text = _as_text(payload)
    cleaned: str = clean(text)[0]
    return cleaned[: conf.EVENTS_MAX_PAYLOAD_BYTES // 4]


def _truncated(key: str, value: Any) -> Any:
    if not isinstance(value, str) or key not in LIMITS:
        return value
    cleaned: str = clean(value)[0]
    return cleaned[: LIMITS[key]]


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, BaseModel):
        value = value.__dict__ | value.model_extra if value.model_extra else value.__dict__
    if isinstance(value, dict):
        return all(_is_finite(item) for item in value.values())
    return not isinstance(value, list | tuple) or all(_is_finite(item) for item in value)


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def clean(value: Any) -> tuple[Any, bool]:
    """Replace characters that PostgreSQL cannot store (NUL, lone surrogates) by U+FFFD, at any
    depth. Return the new value, and whether it differs."""
    if isinstance(value, str):
        cleaned, count = _UNSTORABLE.subn("\ufffd", value)
        return cleaned, count > 0
    if isinstance(value, dict):
        pairs = [(clean(key), clean(item)) for key, item in value.items()]
        changed = any(key[1] or item[1] for key, item in pairs)
        return {key[0]: item[0] for key, item in pairs}, changed
    if isinstance(value, list | tuple):
        items = [clean(item) for item in value]
        return [item[0] for item in items], any(item[1] for item in items)
    return value, False
