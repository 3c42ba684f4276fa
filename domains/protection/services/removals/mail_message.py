"""The mail that asks a broker to remove a person's data."""

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from tailrace.domains.protection.services.removals.steps import Step


def removal_message(step: Step) -> EmailMessage:
    """Return the mail to the broker. Each attempt of a submission has the same Message-ID, so that
    brokers can recognize a repeated mail."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    host = re.sub(r"[^A-Za-z0-9.-]", "-", host)
    context = {"broker": step.broker, "fields": step.broker.filled(step.person)}
    return EmailMessage(
        subject="Request to remove personal data",
        body=render_to_string("tailrace/protection/removals/request.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[step.broker.mail or ""],
        reply_to=[step.person.email],
        headers={
            "Message-ID": f"<{step.idempotency_key}@{host}>",
            "Auto-Submitted": "auto-generated",
        },
    )
