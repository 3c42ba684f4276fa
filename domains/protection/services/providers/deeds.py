"""Sources of deeds, which scans of properties read.

To add a source, add a file with a subclass of `DeedSource` to this folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tailrace.domains.protection.services.properties.documents import Reading
from tailrace.domains.protection.services.properties.places import Place
from tailrace.environment.discovery import import_modules, subclasses

Position = Mapping[str, Any]
"""The position in a feed, as JSON in the form of its source; empty at first."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    position: Position
    """The position for the next call, once this page is processed."""
    place_keys: frozenset[str] = frozenset()
    """The `Place.place_key` of the lots and addresses in the changed documents."""
    more: bool = False
    """Whether another page is available now."""


class DeedSource:
    """A source of public records of properties. Its methods raise the errors of `ask`."""

    name: ClassVar[str]
    """The value of `WatchedProperty.source`."""
    feeds: ClassVar[Sequence[str]] = ()
    """The names of its change feeds."""

    def is_set(self) -> bool:
        return True

    async def read(self, place: Place, most: int) -> Reading:
        """Return the documents of a place, or the newest `most` if there are more."""
        raise NotImplementedError

    async def changes(self, feed: str, position: Position) -> FeedPage:
        """Return the changes since this position; at first, only the position to begin at."""
        raise NotImplementedError


def sources() -> dict[str, DeedSource]:
    """Return the configured sources by name."""
    import_modules("services.providers")
    all_sources = (cls() for cls in subclasses(DeedSource))
    return {source.name: source for source in all_sources if source.is_set()}
