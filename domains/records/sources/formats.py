"""The base class of the formats of sources. To add a format, add a file with a subclass here."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel

from tailrace.domains.records import sources
from tailrace.environment.discovery import Described, subclasses
from tailrace.environment.suggest import did_you_mean

MAX_IDENTIFIER = 400
"""Maximum length of the identifier of a record at its source."""


@dataclass(frozen=True, slots=True)
class HarvestedRecord:
    """A record on a page of a source."""

    identifier: str
    datestamp: datetime | None = None
    """The time of the last change according to the source, in UTC."""
    is_deleted: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The fields of `depositions.metadata.Metadata`, which are validated later. Empty for a deleted
    record."""


@dataclass(frozen=True, slots=True)
class Page:
    cursor: Mapping[str, Any]
    """The argument for the next call, once these records are stored."""
    records: Sequence[HarvestedRecord] = ()
    is_last: bool = False
    """Whether all current records have been read. Then the next call reads only new records."""
    total: int | None = None
    """Number of records in the list, if the source tells the number."""


class BadPage(Exception):
    """The source sent a page that cannot be read. The message names the problem and a solution.

    `cursor` is the position for the next try; None: the same page.
    """

    def __init__(self, reason: str, cursor: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.cursor = cursor


class UnknownFormat(ValueError):
    """There is no format of this name."""


class SourceFormat(Described):
    """Reads the pages of sources of one format. The docstring is the description for people."""

    name: ClassVar[str] = ""
    """Stored as `Source.kind`."""
    label: ClassVar[str] = ""

    class Settings(BaseModel):
        """The settings of a source with this format, besides its address."""

    async def read(self, url: str, settings: Any, cursor: Mapping[str, Any]) -> Page:
        """Return the page at the cursor, which is empty for the first page.

        `settings` is an instance of Settings. Raises BadPage, and the errors of `fetch`:
        Unavailable, RateLimited and RequestRefused.
        """
        raise NotImplementedError


@cache
def formats() -> dict[str, SourceFormat]:
    for module in pkgutil.iter_modules(sources.__path__, f"{sources.__name__}."):
        importlib.import_module(module.name)
    instances = {cls.name: cls() for cls in subclasses(SourceFormat) if cls.name}
    return dict(sorted(instances.items()))


def find_format(name: str) -> SourceFormat:
    """Return the format with this name. Raises UnknownFormat."""
    if name not in formats():
        hint = did_you_mean(name, formats())
        known = ", ".join(formats())
        raise UnknownFormat(f"no format of sources is called {name!r}{hint} (known: {known})")
    return formats()[name]
