"""navigation: where else than to ours the head of a person's pages leads."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Entry:
    """A link to the first page of an app."""

    title: str
    view: str
    """The name of its address, with the namespace: `news:latest`."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a page shows of an entry."""

    title: str
    address: str
    current: bool
    """Whether the page that is shown belongs to that app."""


_entries: dict[str, Entry] = {}


def offer(title: str, view: str) -> None:
    """Show the link in the head of all pages: call it in an app's `ready`."""
    _entries[view] = Entry(title, view)


def links(request: HttpRequest) -> list[Link]:
    """Return the links of other apps, in the order in which they were offered."""
    at = request.resolver_match.app_name if request.resolver_match else ""
    return [
        Link(entry.title, reverse(entry.view), entry.view.partition(":")[0] == at)
        for entry in _entries.values()
    ]
