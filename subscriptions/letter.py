"""letter: one event as one mail to one address."""

import hashlib
import re
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.template.loader import render_to_string

from events.publish import Recorded
from jobs.outcomes import Permanent
from subscriptions.audible import ask
from subscriptions.lineage import family_of
from subscriptions.story import tell
from subscriptions.text import one_line


def write(event: Recorded, *, address: str, role: str, job_id: int) -> EmailMultiAlternatives:
    """Return the message, the same for the same job each time. Permanent if the address is bad."""
    story = tell(event)
    around = {"story": story, "role": role.replace("_", " "), "public_url": settings.PUBLIC_URL}
    message = EmailMultiAlternatives(
        subject=story.title,
        body=render_to_string("subscriptions/mail.txt", around),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[_checked(address)],
        headers={name: one_line(value) for name, value in _headers(event, job_id).items()},
    )
    message.attach_alternative(render_to_string("subscriptions/mail.html", around), "text/html")
    return message


def _headers(event: Recorded, job_id: int) -> dict[str, str]:
    root = f"<thread.{_digest(_thread(event))}@{_host()}>"
    own = _digest(f"{job_id} {event.source} {event.source_id}")
    return {
        "Message-ID": f"<job.{job_id}.{own}@{_host()}>",
        "In-Reply-To": root,
        "References": root,
        "List-Id": f"{event.type} <{event.type}.{_host()}>",
        "Auto-Submitted": "auto-generated",
        "Precedence": "bulk",
        "X-Tailrace-Event-Type": event.type,
    }


def _thread(event: Recorded) -> str:
    """Return what a thread has in common: the type's own word, else its family and the subject."""
    family = family_of(event.event_type) if event.event_type else event.type
    return ask(event, "thread") or f"{family} {event.subject}"


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
