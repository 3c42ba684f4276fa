"""What apps declare in their `menu` module: links of the pages and sections of the admin's sidebar.

`PAGE_LINKS` is a sequence of PageLink, `ADMIN_MENU` one AdminSection, and `time_zone_of(user)`
returns the name of the time zone in which the user reads times, or None.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from tailrace.events.discovery import import_modules


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link in the head of every page, to the first page of a part of the site."""

    title: str
    view: str
    """The name of its URL, with the namespace: `news:latest`."""
    badge: Callable[[HttpRequest], str] | None = None
    """Returns HTML that is shown beside the title, such as a count."""

    @property
    def address(self) -> str:
        return reverse(self.view)


@dataclass(frozen=True, slots=True)
class AdminLink:
    """A link in the sidebar of the admin: to the list of a model, or to a view."""

    title: str
    icon: str
    """The name of a Material symbol: `photo_camera`."""
    model: str = ""
    """`app.model`, lower case; its list is shown to those who may view or change it."""
    view: str = ""
    """The name of a URL, if there is no model."""
    permissions: Sequence[str] = ()
    """Permissions that show the link too; a view without any is shown to everybody."""


@dataclass(frozen=True, slots=True)
class AdminSection:
    """The links of one app in the sidebar of the admin, under a title."""

    title: str
    links: Sequence[AdminLink]


def page_links(request: HttpRequest) -> list[dict[str, Any]]:
    """Return title, address and badge of each link, and whether it leads to the shown page: the one
    whose address has most of the page's."""
    links = list(all_page_links())
    addresses = [link.address for link in links if request.path.startswith(link.address)]
    current = max(addresses, key=len, default=None)
    return [
        {
            "title": link.title,
            "address": link.address,
            "current": link.address == current,
            "badge": link.badge(request) if link.badge else "",
        }
        for link in links
    ]


def all_page_links() -> Iterator[PageLink]:
    """Yield the links of all apps, in the order of INSTALLED_APPS."""
    for module in import_modules("menu"):
        yield from getattr(module, "PAGE_LINKS", ())
