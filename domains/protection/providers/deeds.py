"""Sources of deeds: what a scan of properties asks of one.

Another source is one file in this folder with a subclass of `DeedSource`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tailrace.domains.protection.properties.documents import Reading
from tailrace.domains.protection.properties.places import Place
from tailrace.events.discovery import import_modules, subclasses

Position = Mapping[str, Any]
"""How far a feed is read, as its source describes it, in JSON; empty at first."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A part of what has changed."""

    position: Position
    """To be given with the next call, once this part is dealt with."""
    place_keys: frozenset[str] = frozenset()
    """The `Place.place_key` of the lots and the addresses that changed documents are about."""
    more: bool = False
    """Whether there is another part now."""


class DeedSource:
    """Public records of properties. Its calls raise what `ask` raises."""

    name: ClassVar[str]
    """As in `WatchedProperty.source`."""
    feeds: ClassVar[Sequence[str]] = ()
    """The names of its change feeds."""

    def is_set(self) -> bool:
        """Return whether the settings say where it is."""
        return True

    async def read(self, place: Place, most: int) -> Reading:
        """Return the documents about a place, the newest `most` if there are more."""
        raise NotImplementedError

    async def changes(self, feed: str, position: Position) -> FeedPage:
        """Return what has changed since this position; the first call returns only where to
        begin."""
        raise NotImplementedError


def sources() -> dict[str, DeedSource]:
    """Return the sources that are set, by their names."""
    import_modules("providers")
    every = (cls() for cls in subclasses(DeedSource))
    return {source.name: source for source in every if source.is_set()}
