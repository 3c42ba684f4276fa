"""Pagination of the API's lists: query parameters, page schema and helpers."""

from collections.abc import Callable
from typing import Annotated, Generic, TypeVar

from django.db.models import Model, QuerySet
from pydantic import BaseModel, ConfigDict, Field

from tailrace.db.pagination import page_of_rows
from tailrace.web.api.schemas import Out

T = TypeVar("T")
M = TypeVar("M", bound=Model)
MAX_ITEMS = 200

Limit = Annotated[int, Field(ge=1, le=MAX_ITEMS, description="maximum number of items")]
Cursor = Annotated[
    str | None,
    Field(max_length=200, description="`next` of the previous page; empty for the first page"),
]


class PageParams(BaseModel):
    """Query parameters of a list."""

    limit: Limit = 50
    cursor: Cursor = None


class Page(Out, Generic[T]):
    """A page of a list; `next` is the cursor of the next page, null on the last one."""

    # Otherwise pydantic searches all modules for the source of each Page[…], which takes 60 ms.
    model_config = ConfigDict(use_attribute_docstrings=False)

    items: list[T]
    next: str | None = None


def newest_first(
    rows: QuerySet[M], params: PageParams, out: Callable[[M], T], *, time_column: str = ""
) -> Page[T]:
    """Return a page of the rows, sorted by id or by a time column, newest first."""
    page, cursor = page_of_rows(rows, params.cursor, params.limit, time_column)
    return Page(items=[out(row) for row in page], next=cursor or None)
