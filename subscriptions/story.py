"""story: an event in words, by the templates of its type, or a plain line if they fail.

The templates of a type or family are `events/<name>.title.txt`, `.txt` and `.html`; the most
particular one there is wins (see lineage). Those ending in .html are fragments and escape what
they show. They see `event`, `payload`, `description`, `link` and `title`.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog
from django.template import Context, TemplateDoesNotExist
from django.template.loader import select_template
from django.utils.html import linebreaks

from events.publish import Recorded
from subscriptions.audible import ask
from subscriptions.lineage import lineage
from subscriptions.text import one_line, printable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    """One line."""
    text: str
    html: str
    """A fragment, safe to show."""
    link: str


def tell(event: Recorded) -> Story:
    """Put the event into words. Never raises: what a template raises is reported."""
    plain = plain_line(event)
    link = _link(event)
    context = {
        "event": event,
        "payload": event.payload,
        "description": _description(event),
        "link": link,
        "title": plain,
    }
    title = one_line(_render(event, "title.txt", context) or plain)
    context["title"] = title
    text = printable(_render(event, "txt", context) or plain).strip()
    html = printable(_render(event, "html", context) or linebreaks(text, autoescape=True)).strip()
    return Story(title=title, text=text, html=html, link=link)


def plain_line(event: Recorded) -> str:
    """Return what is said of an event when there is nothing better."""
    return one_line(": ".join(filter(None, (_description(event), event.subject))))


def _description(event: Recorded) -> str:
    found = event.event_type.description() if event.event_type else ""
    return " ".join(found.split()).rstrip(".") or event.type


def _link(event: Recorded) -> str:
    try:
        return one_line(ask(event, "link"))
    except Exception:
        log.exception("story.link_failed", event_id=event.id, event_type=event.type)
        return ""


def _render(event: Recorded, form: str, context: dict[str, Any]) -> str:
    names = lineage(event.event_type) if event.event_type else ()
    try:
        found = select_template([f"events/{name}.{form}" for name in names])
    except TemplateDoesNotExist:
        if form == "txt":
            _report_missing(event.type)
        return ""
    except Exception:
        log.exception("story.template_failed", event_id=event.id, form=form)
        return ""
    try:
        inner: Any = found.template
        return str(inner.render(Context(context, autoescape=form == "html"))).strip()
    except Exception:
        log.exception("story.template_failed", event_id=event.id, form=form)
        return ""


@cache
def _report_missing(event_type: str) -> None:
    """Say once per process that a type has no words of its own."""
    log.warning("story.no_template", event_type=event_type, wanted=f"events/{event_type}.txt")
