"""What a breach source is: add one by a file in this folder with a subclass of `Source`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import ClassVar

from tailrace.domains.protection.models import Kind
from tailrace.events.discovery import Described, import_modules, subclasses


@dataclass(frozen=True, slots=True)
class FoundBreach:
    """A breach in which a source has the value that it was asked for."""

    name: str
    """By which the source knows it."""
    title: str
    domain: str = ""
    breached_on: date | None = None
    added_at: datetime | None = None
    modified_at: datetime | None = None
    data_classes: Sequence[str] = field(default=())
    description: str = ""
    """Plain text."""
    accounts: int | None = None


class ValueNotAccepted(Exception):
    """The source does not take this one value; it works otherwise. The message has no value."""


class Source(Described):
    """Looks values up in breaches. The docstring names it for people."""

    name: ClassVar[str] = ""
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """What it can look up."""

    def why_not(self) -> str:
        """Return why it cannot be asked as it is configured, or an empty string."""
        return ""

    async def lookup(self, kind: str, value: str) -> Sequence[FoundBreach]:
        """Return the breaches in which the value stands; none if it is clean.

        Raises SourceAway, SourceBusy or SourceRefuses, as `ask` does, or ValueNotAccepted.
        """
        raise NotImplementedError


def all_sources() -> list[Source]:
    """Return one of each source of all installed apps, by name."""
    import_modules("providers")
    classes = [cls for cls in subclasses(Source) if cls.name]
    return [cls() for cls in sorted(classes, key=lambda cls: cls.name)]
