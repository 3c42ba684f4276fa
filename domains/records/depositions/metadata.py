"""The metadata of records, and their validation."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tailrace.domains.records.depositions.languages import LANGUAGES

MAX_BYTES = 200_000
"""Maximum size of metadata as JSON."""
MAX_PROBLEMS = 50

Name = Annotated[str, Field(min_length=1, max_length=300)]
Keyword = Annotated[str, Field(min_length=1, max_length=200)]


class Metadata(BaseModel):
    """The metadata of a record: types and maximum sizes. `problems_of` checks further rules."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    title: str = Field("", max_length=1000)
    description: str = Field("", max_length=50_000)
    creators: list[Name] = Field(default=[], max_length=1000)
    keywords: list[Keyword] = Field(default=[], max_length=200)
    language: str = Field("", max_length=20, description="ISO 639-1, such as `en`; empty: unknown")
    access: Literal["open", "closed"] = Field(
        "open", description="`closed`: only you can find and read the record"
    )


Problem = dict[str, str]
"""A `field` and a `message`."""


def structural_problems(error: ValidationError) -> list[Problem]:
    return [
        {
            "field": ".".join(str(part) for part in detail["loc"]) or "metadata",
            "message": detail["msg"],
        }
        for detail in error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
    ]


def problems_of(raw: dict[str, Any]) -> list[Problem]:
    """Return the problems of this metadata; an empty list if it is valid."""
    try:
        metadata = Metadata.model_validate(raw)
    except ValidationError as error:
        return structural_problems(error)
    problems = []
    if not re.search(r"\w", metadata.title):
        problems.append(_problem("title", "is missing: a record needs a title"))
    if not metadata.creators:
        problems.append(_problem("creators", "is empty: name at least one creator"))
    if metadata.language and metadata.language not in LANGUAGES:
        message = f"{metadata.language!r} is not a language of ISO 639-1, such as en or de"
        problems.append(_problem("language", message))
    return problems


def _problem(field: str, message: str) -> Problem:
    return {"field": field, "message": message}
