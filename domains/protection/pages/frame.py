"""The frame of a customer's pages: their tabs, and parts that reload themselves."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from tailrace.domains.protection.platform.menu import TABS
from tailrace.web.pages.frame import PersonRequest, show
from tailrace.web.pages.lists import live_address, render_live

SECONDS = 3
"""Seconds between two updates of a live part."""


def show_page(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Show a page whose template extends `tailrace/protection/frame.html`."""
    return show(request, template, {"tabs": _tabs(request), **(context or {})}, status)


def live_part(
    request: PersonRequest, template: str, context: Mapping[str, Any], view: str, *, under_way: bool
) -> str:
    """Return a part of a page with a list. While work is under way, the part requests the URL of
    `view` every few seconds; that view returns the same part with `live_response`."""
    if not under_way:
        return render_to_string(template, dict(context), request)
    address = live_address(request, reverse(f"protection:{view}"))
    return render_live(request, template, context, address, seconds=SECONDS)


def _tabs(request: PersonRequest) -> list[dict[str, Any]]:
    """Return the title and URL of each tab, and whether it belongs to the shown page."""
    links = [(tab.capitalize(), reverse(f"protection:{tab}")) for tab in TABS]
    below = [address for _title, address in links if request.path.startswith(address)]
    current = max(below, key=len, default="")
    return [
        {"title": title, "address": address, "current": address == current}
        for title, address in links
    ]
