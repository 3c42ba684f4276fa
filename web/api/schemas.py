"""Base classes of the schemas of requests and responses."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tailrace.db.times import parse_time


def _parsed_time(value: Any) -> datetime:
    if isinstance(value, str):
        with suppress(ValueError):
            return parse_time(value)
    raise ValueError(
        f"{str(value)[:60]!r} is not a time with a time zone:"
        " send a time such as 2026-10-01T12:00:00Z or 2026-10-01T14:00:00+02:00"
    )


Time = Annotated[
    datetime, BeforeValidator(_parsed_time), Field(description="with a time zone, as in RFC 3339")
]
"""A time in a request."""


class In(BaseModel):
    """A JSON body of a request. Unknown fields are refused, and types are not converted: 1 is not
    true."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Out(BaseModel):
    """A response. The string below a field is its description in the OpenAPI document."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)

    @classmethod
    def of(cls, row: object, **values: Any) -> Self:
        """Return a response with these values, and the row's attributes for the other fields."""
        names = cls.model_fields.keys() - values.keys()
        return cls(**values, **{name: getattr(row, name) for name in names})
