"""What a format of sources is: another one is a file in this folder with a subclass."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel

from tailrace.domains.records import sources
from tailrace.events.discovery import Described, subclasses
from tailrace.events.suggest import did_you_mean

MAX_IDENTIFIER = 400
"""Characters of the identifier of a record at its source."""


@dataclass(frozen=True, slots=True)
class HarvestedRecord:
    """A record as its source describes it."""

    identifier: str
    datestamp: datetime | None = None
    """When it was last changed, by the source; in UTC."""
    is_deleted: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The fields of `tailrace.domains.records.metadata.Metadata`; what does not fit is found later,
    by the validation. Empty if it is deleted."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of what a source has."""

    cursor: Mapping[str, Any]
    """To be given with the next call, once these records are stored."""
    records: Sequence[HarvestedRecord] = ()
    is_last: bool = False
    """Whether everything there is now has been read; a later call reads what is new."""
    total: int | None = None
    """How many records there are to read in all, if the source says so."""


class BadPage(Exception):
    """The source sent something that cannot be read; the message says what and what to do.

    `cursor`: where to try again; None: at the same page.
    """

    def __init__(self, reason: str, cursor: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.cursor = cursor


class UnknownFormat(ValueError):
    """There is no format of this name."""


class SourceFormat(Described):
    """Reads the pages of a kind of sources. The docstring describes it for people."""

    name: ClassVar[str] = ""
    """Stored as `Source.kind`."""
    label: ClassVar[str] = ""

    class Settings(BaseModel):
        """What a source of this format may have beside its address."""

    async def read(self, url: str, settings: Any, cursor: Mapping[str, Any]) -> Page:
        """Return the page at the cursor, which is empty at first. `settings` is an instance of
        Settings.

        Raises BadPage, or SourceAway, SourceBusy or SourceRefuses as `fetch` does.
        """
        raise NotImplementedError


@cache
def formats() -> dict[str, SourceFormat]:
    """Return one of each format of all installed apps, by name."""
    for module in pkgutil.iter_modules(sources.__path__, f"{sources.__name__}."):
        importlib.import_module(module.name)
    every = {cls.name: cls() for cls in subclasses(SourceFormat) if cls.name}
    return dict(sorted(every.items()))


def find_format(name: str) -> SourceFormat:
    """Return the format of this name; UnknownFormat if there is none."""
    if name not in formats():
        hint = did_you_mean(name, formats())
        known = ", ".join(formats())
        raise UnknownFormat(f"no format of sources is called {name!r}{hint} (known: {known})")
    return formats()[name]
