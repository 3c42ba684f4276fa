"""bodies: what a request brings, within bounds and fit to be stored."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from events.prepare import clean
from subscriptions.api.problems import Problem, invalid

UNSTORABLE = "there is a NUL character or half a surrogate pair, which cannot be stored"


def check_size(request: HttpRequest) -> None:
    """Refuse a body that is too large, or that the server did not hand on."""
    most = settings.API_MAX_BODY_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most or len(request.body) > most:
        raise Problem(413, f"the body has more than {most} bytes (API_MAX_BODY_BYTES)")
    if not request.body and "Transfer-Encoding" in request.headers:
        raise Problem(411, "send the body with its Content-Length, not in chunks")


def check_length(request: HttpRequest, most: int, setting: str) -> None:
    """Refuse by its announced length a body that may be larger than memory; read nothing."""
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if length > most:
        raise Problem(413, f"the body has {length} bytes, and at most {most} are taken ({setting})")
    if not length and "Transfer-Encoding" in request.headers:
        raise Problem(411, "send the body with its Content-Length, not in chunks")


def check_type(request: HttpRequest, *types: str) -> None:
    """Refuse a body of another content type."""
    if request.content_type not in types:
        raise Problem(
            415,
            f"send {' or '.join(types)}, not {request.content_type or 'no content type'}",
            headers={"Accept": ", ".join(types)},
        )


def parse(body: bytes) -> Any:
    """Return what the JSON says; refuse what is none, and what PostgreSQL cannot store."""
    try:
        parsed = json.loads(body, parse_constant=_no_number)
        check_storable(parsed)
    except ValueError as error:
        raise Problem(400, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Problem(400, "the body is nested too deeply") from None
    return parsed


def check_storable(value: Any) -> None:
    if clean(value)[1]:
        raise invalid(UNSTORABLE)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")
