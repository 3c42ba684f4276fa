"""Render an event as text with the templates of its type, or as a plain line if they fail.

The templates of a type or family are `title.txt`, `text.txt` and `text.html` in the folder
`tailrace/events/<name>/`; the most specific one is used (see topic_names). The .html templates are
fragments with autoescaping. The context is `event`, `payload`, `description`, `link` and `title`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog
from django.template import Context, TemplateDoesNotExist
from django.template.loader import select_template
from django.utils.html import linebreaks

from tailrace.events.catalog.topics import topic_names, type_title
from tailrace.events.publish import Recorded
from tailrace.net.sanitize import one_line, printable
from tailrace.subscriptions.types.subscribable import link_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EventText:
    title: str
    """One line."""
    text: str
    html: str
    """A fragment; values are escaped."""
    link: str


def render_event(event: Recorded, more: Mapping[str, Any] | None = None) -> EventText:
    """Render the event, with `more` in the context. Never raises: errors are logged."""
    plain = plain_line(event)
    link = _link(event)
    context = {
        **(more or {}),
        "event": event,
        "payload": event.raw_payload,
        "description": _description(event),
        "link": link,
        "title": plain,
    }
    title = one_line(_render(event, "title.txt", context) or plain)
    context["title"] = title
    text = printable(_render(event, "text.txt", context) or plain).strip()
    html = _render(event, "text.html", context) or linebreaks(text, autoescape=True)
    return EventText(title=title, text=text, html=printable(html).strip(), link=link)


def plain_line(event: Recorded) -> str:
    """Return the title of an event without a template."""
    return one_line(": ".join(filter(None, (_description(event), event.subject))))


def _description(event: Recorded) -> str:
    return type_title(event.event_type) if event.event_type else event.type


def _link(event: Recorded) -> str:
    try:
        return one_line(link_of(event))
    except Exception:
        log.exception("event_text.link_failed", event_id=event.id, event_type=event.type)
        return ""


def _render(event: Recorded, form: str, context: dict[str, Any]) -> str:
    names = topic_names(event.event_type) if event.event_type else ()
    try:
        template: Any = select_template([f"tailrace/events/{name}/{form}" for name in names])
    except TemplateDoesNotExist:
        if form == "text.txt":
            _report_missing(event.type)
        return ""
    except Exception:
        log.exception("event_text.template_failed", event_id=event.id, form=form)
        return ""
    try:
        values = Context(context, autoescape=form == "text.html")
        return str(template.template.render(values)).strip()
    except Exception:
        log.exception("event_text.template_failed", event_id=event.id, form=form)
        return ""


@cache
def _report_missing(event_type: str) -> None:
    """Log, once per process and type, that an event type has no template: its plain line is enough
    for many types, and /api/docs shows an example of each."""
    log.debug(
        "event_text.no_template",
        event_type=event_type,
        wanted=f"tailrace/events/{event_type}/text.txt",
    )
