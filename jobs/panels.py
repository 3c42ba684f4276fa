"""Panels: the cards of the overview page, and what other rooms have to say on an event's page.

Write a subclass in `panels.py` of any installed app.
"""

from typing import Any, ClassVar

from django.http import HttpRequest
from django.template.loader import render_to_string

from events.models import Event


class Panel:
    """One card: a template, and a `context` of bounded, indexed queries, read every few seconds.

    The template gives the card's inside; title and frame come from the overview, which also has
    the classes `tr-table`, `tr-scroll`, `tr-num`, `tr-quiet`, `tr-note` for it (tailrace.css).
    """

    title: ClassVar[str] = ""
    order: ClassVar[int] = 50
    template: ClassVar[str] = ""
    wide: ClassVar[bool] = False
    """Takes the page's whole width."""
    permission: ClassVar[str] = ""
    """Which permission it takes to see it, e.g. `jobs.view_job`; empty: any staff."""

    def context(self) -> dict[str, Any]:
        return {}


def everything() -> list[Panel]:
    """Return one of each panel of all installed apps, in their order."""
    classes = [cls for cls in Panel.__subclasses__() if cls.template]
    return [cls() for cls in sorted(classes, key=lambda cls: (cls.order, cls.title))]


class EventPanel:
    """A section of an event's page in the admin: a template, and its `context`."""

    title: ClassVar[str] = ""
    template: ClassVar[str] = ""
    permission: ClassVar[str] = ""
    """Which permission it takes to see it; empty: that for events."""

    def context(self, event: Event, request: HttpRequest) -> dict[str, Any]:
        """Return what the template shows; bounded, indexed queries."""
        return {}


def of_event(event: Event, request: HttpRequest) -> list[dict[str, str]]:
    """Return title and inside of each section that the request's user may see."""
    panels = sorted((cls() for cls in EventPanel.__subclasses__()), key=lambda one: one.title)
    return [
        {
            "title": panel.title,
            "inside": render_to_string(panel.template, panel.context(event, request), request),
        }
        for panel in panels
        if not panel.permission or request.user.has_perm(panel.permission)
    ]
