"""Checks of a request: size, content type, JSON, and text that PostgreSQL can store.

All functions raise a Problem if the request fails the check.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from tailrace.environment.field_errors import Path
from tailrace.events.publishing.validation import clean
from tailrace.web.api.faults import in_body
from tailrace.web.api.problems import Problem, of_faults, wrong_parameter

UNSTORABLE = "NUL characters and lone surrogates cannot be stored"
LENGTH_REQUIRED = "send the body with a Content-Length, not in chunks"
MAX_VALUES = 20_000
"""Maximum number of arrays, objects and members in a JSON body."""
MAX_DEPTH = 100
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def check_size(request: HttpRequest) -> None:
    """Refuse a body that is too large, or sent in chunks: the web server does not pass it on."""
    limit = settings.API_MAX_BODY_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > limit or len(request.body) > limit:
        raise Problem(413, f"the body is longer than {limit} bytes (API_MAX_BODY_BYTES)")
    if not request.body and "Transfer-Encoding" in request.headers:
        raise Problem(411, LENGTH_REQUIRED)


def check_length(request: HttpRequest, limit: int, setting: str) -> None:
    """Refuse a body by its Content-Length, without reading it: it may not fit into memory."""
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if length > limit:
        raise Problem(413, f"the body has {length} bytes; the limit is {limit} ({setting})")
    if not length and "Transfer-Encoding" in request.headers:
        raise Problem(411, LENGTH_REQUIRED)


def check_type(request: HttpRequest, *types: str) -> None:
    """Refuse a body whose content type is not one of `types`."""
    if request.content_type not in types:
        raise Problem(
            415,
            f"send {' or '.join(types)}, not {request.content_type or 'an empty content type'}",
            headers={"Accept": ", ".join(types)},
        )


def parse(body: bytes) -> Any:
    """Return the parsed JSON; refuse invalid JSON and text that PostgreSQL cannot store.

    The number of values and the nesting are checked before parsing.
    """
    _check_shape(body)
    try:
        parsed = json.loads(body, parse_constant=_refuse_constant)
        check_storable(parsed)
    except ValueError as error:
        raise Problem(400, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Problem(400, "the body is nested too deeply") from None
    return parsed


def _check_shape(body: bytes) -> None:
    """Refuse JSON with too many values or too deep nesting, in linear time."""
    shape = _STRING.sub(b"", body)
    opened = shape.count(b"[") + shape.count(b"{")
    # This check is first, since it bounds the loop below.
    if opened + shape.count(b",") > MAX_VALUES:
        raise Problem(413, f"the body has more than {MAX_VALUES} values")
    if opened > MAX_DEPTH:
        depth = deepest = 0
        for bracket in _BRACKET.findall(shape):
            depth += 1 if bracket in b"[{" else -1
            deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            raise Problem(400, f"the body is nested more than {MAX_DEPTH} levels deep")


def check_storable(value: Any, *location: str | int) -> None:
    """Refuse text that PostgreSQL cannot store. `location` is the path of the value in the body."""
    if clean(value)[1]:
        raise of_faults([in_body(UNSTORABLE, *location, *_first_unstorable(value))])


def check_query(query: Mapping[str, Any]) -> None:
    """Refuse query parameters that PostgreSQL cannot store."""
    for name, values in query.items():
        if clean([name, values])[1]:
            raise wrong_parameter(name, UNSTORABLE)


def _first_unstorable(value: Any) -> Path:
    """Return the path of the first text that cannot be stored; for a key, that of its object."""
    if isinstance(value, dict):
        if clean(list(value))[1]:
            return ()
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return ()
    key, item = next((key, item) for key, item in items if clean(item)[1])
    return key, *_first_unstorable(item)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")
