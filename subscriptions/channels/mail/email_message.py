"""Build the mail of an event or a digest."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.template.loader import render_to_string
from django.urls import reverse

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Permanent
from tailrace.net.sanitize import one_line, plain_breaks
from tailrace.subscriptions.channels.mail import unsubscribe
from tailrace.subscriptions.models import Digest, Notification
from tailrace.subscriptions.notifications.rendering.event_text import (
    EventText,
    plain_line,
    render_event,
)
from tailrace.subscriptions.types.roles import role_words
from tailrace.subscriptions.types.subscribable import mail_headers_of, thread_of
from tailrace.web.accounts.time_zones import zone_named

log = structlog.get_logger(__name__)

MAX_EVENTS = 20
"""The number of events that a digest shows; further events are only counted."""
_BULK = {"Auto-Submitted": "auto-generated", "Precedence": "bulk"}


def address_of(row: Notification | Digest) -> str:
    """Return the mail address; empty if there is none or the user is inactive."""
    if row.user is not None:
        return row.user.email if row.user.is_active else ""
    address = getattr(row.group, "address", None)
    return str(address.email) if address else ""


def event_message(
    event: Recorded,
    *,
    address: str,
    role: str,
    job_id: int,
    user: User | None = None,
    more: Mapping[str, Any] | None = None,
) -> EmailMultiAlternatives:
    """Return the mail of an event, which is the same for each attempt of a job. A mail to a `user`
    has a one-click unsubscribe link (RFC 8058). Raise Permanent if the address is invalid."""
    event_text = render_event(event, more)
    unsubscribe_url = unsubscribe.event_url(user, event.type, role) if user else ""
    context = {
        "event_text": event_text,
        "role": role_words(role),
        "unsubscribe_url": unsubscribe_url,
        "why_url": _why_url(event) if user else "",
    }
    return _message("mail", event_text.title, address, context, _event_headers(event, job_id))


def digest_message(
    digest: Digest, events: Sequence[Recorded], *, address: str, unread: int = 0
) -> EmailMultiAlternatives:
    """Return the mail of a digest. `unread` further events are only counted."""
    total = len(events) + unread
    plural = "" if total == 1 else "s"
    title = f"{digest.pace.capitalize()} digest: {total} event{plural}"
    unsubscribe_url = unsubscribe.digest_url(digest) if digest.user else ""
    preferences = getattr(digest.user, "preferences", None)
    zone = zone_named(preferences.time_zone if preferences else "UTC")
    context = {
        "title": title,
        "groups": _groups(events, zone, bool(digest.user)),
        "unread": unread,
        "more": max(total - MAX_EVENTS, 0),
        "pace": digest.pace,
        "zone": zone.key,
        "unsubscribe_url": unsubscribe_url,
    }
    own_id = _hash(f"digest {digest.pk} {digest.window_end.isoformat()}")
    headers = {
        "Message-ID": f"<digest.{digest.pk}.{own_id}@{_host()}>",
        "List-Id": f"{digest.pace} digest <digest.{digest.pace}.{_host()}>",
    }
    return _message("digest", title, address, context, headers)


@dataclass(frozen=True, slots=True)
class _Item:
    """The events of a digest that have the same title, with their times in the reader's zone."""

    event_text: EventText
    why_url: str
    times: list[datetime]


@dataclass(frozen=True, slots=True)
class _Group:
    """The events of one kind: their number, and the first of them."""

    kind: str
    count: int
    items: list[_Item]


def _groups(events: Sequence[Recorded], zone: ZoneInfo, explains: bool) -> list[_Group]:
    """Group the events by kind, the most frequent kind first; the first MAX_EVENTS have a text."""
    kinds = [plain_line(replace(event, subject="")) for event in events]
    items: dict[str, dict[str, _Item]] = defaultdict(dict)
    for kind, event in list(zip(kinds, events, strict=True))[:MAX_EVENTS]:
        text = render_event(event)
        item = _Item(text, _why_url(event) if explains else "", [])
        items[kind].setdefault(text.title, item).times.append(event.occurred_at.astimezone(zone))
    return [
        _Group(kind, count, list(items[kind].values()))
        for kind, count in Counter(kinds).most_common()
    ]


def _why_url(event: Recorded) -> str:
    return settings.PUBLIC_URL + reverse("my_why", args=[event.id])


def _message(
    template: str, title: str, address: str, context: dict[str, Any], headers: dict[str, str]
) -> EmailMultiAlternatives:
    try:
        validate_email(address)
    except ValidationError:
        raise Permanent(f"{one_line(address)!r} is not a mail address") from None
    context |= {"public_url": settings.PUBLIC_URL}
    headers |= _BULK
    if url := context["unsubscribe_url"]:
        headers["List-Unsubscribe"] = f"<{url}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message = EmailMultiAlternatives(
        subject=title,
        body=_rendered(f"{template}.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[address],
        headers={name: one_line(value) for name, value in headers.items()},
    )
    message.attach_alternative(_rendered(f"{template}.html", context), "text/html")
    return message


def _rendered(template: str, context: dict[str, Any]) -> str:
    # Django finds lines that are too long for SMTP with splitlines(), which also splits at Unicode
    # line breaks. Mail servers do not, and would reject the mail.
    return plain_breaks(render_to_string(f"tailrace/subscriptions/{template}", context))


def _event_headers(event: Recorded, job_id: int) -> dict[str, str]:
    root = f"<thread.{_hash(thread_of(event))}@{_host()}>"
    own_id = _hash(f"{job_id} {event.source} {event.source_id}")
    try:
        more = mail_headers_of(event)
    except Exception:  # the mail is sent without these headers
        log.exception("mail.headers_failed", event_id=event.id, event_type=event.type)
        more = {}
    return {
        **more,
        "Message-ID": f"<job.{job_id}.{own_id}@{_host()}>",
        "In-Reply-To": root,
        "References": root,
        "List-Id": f"{event.type} <{event.type}.{_host()}>",
        "X-Tailrace-Event-Type": event.type,
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _host() -> str:
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return re.sub(r"[^A-Za-z0-9.-]", "-", host)
