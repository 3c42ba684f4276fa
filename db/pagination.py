"""Keyset pagination: pages of rows, and opaque cursors that hold the key of a page's last row."""

import base64
import json
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00Z")


class InvalidCursor(ValueError):
    """The text is not a cursor of this list. The argument is the name of the query parameter."""


def encode(*key: Any) -> str:
    """Return the cursor of the page that starts after the row with this key."""
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode(cursor: str, *types: type, parameter: str = "cursor") -> tuple[Any, ...]:
    """Return the key in a cursor. Raises InvalidCursor unless its parts have these types."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(types):
        raise InvalidCursor(parameter)
    if any(isinstance(part, int) and not -(2**63) <= part < 2**63 for part in key):
        raise InvalidCursor(parameter)
    return tuple(key)


def page_of_rows(
    rows: QuerySet[M], cursor: str | None, size: int, time_column: str = ""
) -> tuple[list[M], str]:
    """Return a page of rows, newest first by id or by a time column, and the cursor of the next
    page ("" if there is none). Raises InvalidCursor."""
    if cursor is not None and time_column:
        microseconds, id = decode(cursor, int, int)
        try:
            time = _EPOCH + timedelta(microseconds=microseconds)
        except OverflowError:
            raise InvalidCursor("cursor") from None
        not_newer = {f"{time_column}__lte": time}
        rows = rows.filter(Q(**{f"{time_column}__lt": time}) | Q(pk__lt=id), **not_newer)
    elif cursor is not None:
        rows = rows.filter(pk__lt=decode(cursor, int)[0])
    page = list(rows.order_by(*([f"-{time_column}"] if time_column else []), "-pk")[: size + 1])
    if len(page) <= size:
        return page, ""
    last = page[size - 1]
    if not time_column:
        return page[:size], encode(last.pk)
    microseconds = (getattr(last, time_column) - _EPOCH) // timedelta(microseconds=1)
    return page[:size], encode(microseconds, last.pk)
