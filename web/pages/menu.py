"""What apps declare in their `menu` module: `PAGE_LINKS`, a sequence of PageLink; `ADMIN_MENU`, an
AdminSection; `MAP_LAYERS` (see `map_layers`); and `time_zone_of(user)`, which returns the name of
the time zone, or None."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from tailrace.environment.discovery import import_modules


@dataclass(frozen=True, slots=True)
class PageLink:
    title: str
    view: str
    """The name of the URL, with its namespace: `news:latest`."""
    badge: Callable[[HttpRequest], str] | None = None
    """Returns HTML to show beside the title, such as a count."""

    @property
    def address(self) -> str:
        return reverse(self.view)


@dataclass(frozen=True, slots=True)
class AdminLink:
    """A link in the sidebar of the admin, to the list of a model or to a view."""

    title: str
    icon: str
    """The name of a Material symbol: `photo_camera`."""
    model: str = ""
    """`app.model`, in lower case. The link is shown to users who may view or change the model."""
    view: str = ""
    """The name of a URL, if there is no model."""
    permissions: Sequence[str] = ()
    """Further permissions with which the link is shown. Without a model and permissions, the link
    is shown to all staff."""


@dataclass(frozen=True, slots=True)
class AdminSection:
    title: str
    links: Sequence[AdminLink]


def page_links(request: HttpRequest) -> list[dict[str, Any]]:
    """Return title, address and badge of each link, and whether it is current: the link whose
    address is the longest prefix of the request's path."""
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
    """Yield the page links of all apps, in the order of INSTALLED_APPS."""
    for module in import_modules("menu"):
        yield from getattr(module, "PAGE_LINKS", ())
