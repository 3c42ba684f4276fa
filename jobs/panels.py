"""Panels: the cards of the overview page. Write a subclass in `panels.py` of any installed app."""

from typing import Any, ClassVar


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
