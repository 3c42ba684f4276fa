"""Panels on the overview page and on the page of an event: subclasses in `panels.py` of any app."""

from functools import cache, cached_property
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.template.loader import render_to_string

from tailrace.environment.discovery import import_modules
from tailrace.events.models import Event
from tailrace.jobs.platform.inspection.queues import stats

MAX_COUNTED = 10_000
"""Jobs of a queue in one state are counted up to this number."""


class Shared:
    """What several panels of a page need, read once."""

    @cached_property
    def queues(self) -> list[stats.QueueStats]:
        """The statistics of all queues, with counts up to MAX_COUNTED."""
        return stats.queues(MAX_COUNTED)


class Panel:
    """A panel of the overview: a template and its `context` from bounded, indexed queries.

    It is rendered every few seconds. The overview adds the title and the frame. Its stylesheet
    (tailrace.css) has the classes `tr-table`, `tr-scroll`, `tr-num`, `tr-quiet` and `tr-note` for
    the template.
    """

    title: ClassVar[str] = ""
    order: ClassVar[int] = 50
    template: ClassVar[str] = ""
    wide: ClassVar[bool] = False
    """Whether it takes the whole width of the page."""
    permission: ClassVar[str] = ""
    """The permission to see it, e.g. `tailrace_jobs.view_job`; empty: all staff may."""

    user: User
    """The user who views the panel; set before `context` is called."""
    shared: Shared
    """Set before `context` is called, too."""

    def context(self) -> dict[str, Any]:
        """Return the template's context; panels with `alert: True` are shown first."""
        return {}


@cache
def _find() -> None:
    """Import every app's `panels` module: only processes that serve pages need them."""
    import_modules("panels")


def all_panels() -> list[Panel]:
    _find()
    classes = [cls for cls in Panel.__subclasses__() if cls.template]
    return [cls() for cls in sorted(classes, key=lambda cls: (cls.order, cls.title))]


class EventPanel:
    """A section of an event's page in the admin: a template, and its `context`."""

    title: ClassVar[str] = ""
    template: ClassVar[str] = ""
    permission: ClassVar[str] = ""
    """The permission to see it; empty: the permission to view events."""

    def context(self, event: Event, request: HttpRequest) -> dict[str, Any]:
        """Return the template's context from bounded, indexed queries."""
        return {}


def event_panels(event: Event, request: HttpRequest) -> list[dict[str, str]]:
    """Return `title` and `content` of each section that the user may see."""
    _find()
    panels = sorted((cls() for cls in EventPanel.__subclasses__()), key=lambda panel: panel.title)
    return [
        {
            "title": panel.title,
            "content": render_to_string(panel.template, panel.context(event, request), request),
        }
        for panel in panels
        if not panel.permission or request.user.has_perm(panel.permission)
    ]
