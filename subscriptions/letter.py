"""letter: one event, or the events of a window, as one mail to one address."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.template.loader import render_to_string

from events.publish import Recorded
from jobs.outcomes import Permanent
from subscriptions import unsubscribe
from subscriptions.audible import thread_of
from subscriptions.models import Digest
from subscriptions.story import plain_line, tell
from subscriptions.text import one_line

SHOWN = 20
"""Events that a digest tells of one by one; the others it counts."""
_BULK = {"Auto-Submitted": "auto-generated", "Precedence": "bulk"}


def write(
    event: Recorded, *, address: str, role: str, job_id: int, user: User | None = None
) -> EmailMultiAlternatives:
    """Return the message, the same for the same job each time. Permanent if the address is bad.

    To a `user` it has a way to unsubscribe from it, with one click (RFC 8058).
    """
    story = tell(event)
    way_out = unsubscribe.address(user, event.type, role) if user else ""
    around = {
        "story": story,
        "role": role.replace("_", " "),
        "public_url": settings.PUBLIC_URL,
        "way_out": way_out,
    }
    return _message("mail", story.title, address, around, _headers(event, job_id) | _out(way_out))


def write_digest(
    digest: Digest, events: Sequence[Recorded], *, address: str
) -> EmailMultiAlternatives:
    """Return the mail of a window: how many events of which kind, and the first of them."""
    counts = Counter(_kind(event) for event in events)
    title = f"{digest.pace.capitalize()} digest: {_events(len(events))}"
    way_out = unsubscribe.address_of_digest(digest) if digest.user else ""
    around = {
        "title": title,
        "counts": counts.most_common(),
        "stories": [tell(event) for event in events[:SHOWN]],
        "more": max(len(events) - SHOWN, 0),
        "public_url": settings.PUBLIC_URL,
        "pace": digest.pace,
        "way_out": way_out,
    }
    own = _digest(f"digest {digest.pk} {digest.window_end.isoformat()}")
    headers = {
        "Message-ID": f"<digest.{digest.pk}.{own}@{_host()}>",
        "List-Id": f"{digest.pace} digest <digest.{digest.pace}.{_host()}>",
        **_BULK,
    }
    return _message("digest", title, address, around, headers | _out(way_out))


def _message(
    template: str, title: str, address: str, around: dict[str, Any], headers: dict[str, str]
) -> EmailMultiAlternatives:
    message = EmailMultiAlternatives(
        subject=title,
        body=render_to_string(f"subscriptions/{template}.txt", around),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[_checked(address)],
        headers={name: one_line(value) for name, value in headers.items()},
    )
    html = render_to_string(f"subscriptions/{template}.html", around)
    message.attach_alternative(html, "text/html")
    return message


def _out(address: str) -> dict[str, str]:
    if not address:
        return {}
    return {
        "List-Unsubscribe": f"<{address}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def _kind(event: Recorded) -> str:
    return plain_line(replace(event, subject=""))


def _events(count: int) -> str:
    return f"{count} event" if count == 1 else f"{count} events"


def _headers(event: Recorded, job_id: int) -> dict[str, str]:
    root = f"<thread.{_digest(thread_of(event))}@{_host()}>"
    own = _digest(f"{job_id} {event.source} {event.source_id}")
    return {
        "Message-ID": f"<job.{job_id}.{own}@{_host()}>",
        "In-Reply-To": root,
        "References": root,
        "List-Id": f"{event.type} <{event.type}.{_host()}>",
        **_BULK,
        "X-Tailrace-Event-Type": event.type,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _host() -> str:
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return re.sub(r"[^A-Za-z0-9.-]", "-", host)


def _checked(address: str) -> str:
    try:
        validate_email(address)
    except ValidationError:
        raise Permanent(f"{one_line(address)!r} is not a mail address") from None
    return address
