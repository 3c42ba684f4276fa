"""The interface of breach sources. To add one, add a file with a subclass of `Source` to this
folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import ClassVar

from tailrace.domains.protection.models import Kind
from tailrace.environment.discovery import Described, import_modules, subclasses


@dataclass(frozen=True, slots=True)
class FoundBreach:
    """A breach that contains the value of a look-up."""

    name: str
    """The source's name of the breach."""
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
    """The source does not accept this value, but works otherwise. The message does not contain the
    value."""


class Source(Described):
    """A source of breaches. The docstring of a subclass is its title."""

    name: ClassVar[str] = ""
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """The kinds of values that it can look up."""

    def why_not(self) -> str:
        """Return why the source is not configured, or an empty string if it is."""
        return ""

    async def lookup(self, kind: str, value: str) -> Sequence[FoundBreach]:
        """Return the breaches that contain the value; an empty list if there are none.

        Raises Unavailable, RateLimited or RequestRefused, as `ask` does, or ValueNotAccepted.
        """
        raise NotImplementedError


def all_sources() -> list[Source]:
    """Return an instance of each source of all installed apps, by name."""
    import_modules("services.providers")
    classes = [cls for cls in subclasses(Source) if cls.name]
    return [cls() for cls in sorted(classes, key=lambda cls: cls.name)]
