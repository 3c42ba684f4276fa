"""paging: lists page by page along a key, by a cursor that says nothing to whoever holds it."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from pydantic import BaseModel, Field

from subscriptions.api.problems import wrong_parameter
from subscriptions.api.shapes import Out

T = TypeVar("T")
M = TypeVar("M", bound=Model)
MOST = 200
NOT_OURS = "it is none that was given out here"

Limit = Annotated[int, Field(ge=1, le=MOST, description="items of a page, at most")]
Cursor = Annotated[
    str | None, Field(max_length=200, description="`next` of the page before; none: the first page")
]


class Paged(BaseModel):
    """Which page is asked for."""

    limit: Limit = 50
    cursor: Cursor = None


class Page(Out, Generic[T]):
    """A page, and the cursor of the next one, or null at the end."""

    items: list[T]
    next: str | None = None


def encode(*key: Any) -> str:
    """Return the cursor that goes on after the row of this key."""
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode(cursor: str, *types: type, name: str = "cursor") -> tuple[Any, ...]:
    """Return the key of a cursor, whose parts have these types; else a problem."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(types):
        raise wrong_parameter(name, NOT_OURS)
    if any(isinstance(part, int) and not -(2**63) <= part < 2**63 for part in key):
        raise wrong_parameter(name, NOT_OURS)
    return tuple(key)


def newest_first(rows: QuerySet[M], asked: Paged, out: Callable[[M], T]) -> Page[T]:
    """Return a page of the rows along their ids, the newest first."""
    if asked.cursor is not None:
        rows = rows.filter(pk__lt=decode(asked.cursor, int)[0])
    found = list(rows.order_by("-pk")[: asked.limit + 1])
    return page_of(found, asked, out, lambda row: encode(row.pk))


def page_of(
    found: Sequence[M], asked: Paged, out: Callable[[M], T], cursor: Callable[[M], str]
) -> Page[T]:
    """Make a page of `limit` rows, and one more where there is a next page."""
    page = found[: asked.limit]
    more = len(found) > asked.limit
    return Page(items=[out(row) for row in page], next=cursor(page[-1]) if more else None)
