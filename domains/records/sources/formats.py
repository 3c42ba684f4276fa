"""`SourceFormat`: how the records of one kind of source are read, and the list of all kinds."""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from domains.records import sources
from domains.records.models import Source
from events.discovery import Described


@dataclass(frozen=True, slots=True)
class HarvestedRecord:
    """One version of a record as a source lists it."""

    identifier: str
    """Unique within the source."""
    datestamp: datetime
    metadata: dict[str, Any]
    """The fields of `domains.records.metadata.Metadata`; what does not fit is found later, by the
    validation."""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one response, and where to go on."""

    records: Sequence[HarvestedRecord]
    cursor: Any
    """JSON, stored as `Source.cursor`."""
    is_last: bool
    """Whether there is nothing more to read now."""


class SourceFormat(Described, ABC):
    """A kind of source. Its docstring names it for people; one instance serves all sources."""

    name: ClassVar[str]
    """Stored as `Source.kind`."""

    class Settings(BaseModel):
        """Validates `Source.settings`."""

        model_config = ConfigDict(extra="forbid")

    @abstractmethod
    def read(self, source: Source) -> Page:
        """Read one page from the source's cursor.

        Raises an outcome of `jobs.outcomes` for what a later try may change (Snooze, Retry) or what
        none will change (Permanent)."""


@cache
def formats() -> dict[str, SourceFormat]:
    """Return the formats by name, all that are in this package."""
    for module in pkgutil.iter_modules(sources.__path__, f"{sources.__name__}."):
        importlib.import_module(module.name)
    every = (cls() for cls in SourceFormat.__subclasses__())
    return {one.name: one for one in sorted(every, key=lambda one: one.name)}
