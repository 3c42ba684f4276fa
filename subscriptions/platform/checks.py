import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import all_types
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.subscribable import receiver_roles

VAPID_SUBJECT = re.compile(
    r"(mailto:[^@\s]+@(localhost|[\w-]+(\.[\w-]+)+)|https://[\w-]+\.[\w.-]+)?"
)
"""The values that py_vapid accepts."""


@register("settings")
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return the errors of the settings of webhooks, push and text messages."""
    return list(_wrong_settings())


def _wrong_settings() -> Iterator[CheckMessage]:
    wanted = {"SMS_TOKEN": "SMS_URL", "SMS_FROM": "SMS_URL", "VAPID_SUBJECT": "VAPID_PRIVATE_KEY"}
    for name, other in wanted.items():
        if getattr(settings, other) and not getattr(settings, name):
            yield Error(f"{name}: is not set, and {other} needs it", id="tailrace.E003")
    if not VAPID_SUBJECT.fullmatch(settings.VAPID_SUBJECT):
        hint = "Set it to mailto:you@example.org or https://example.org."
        yield Error("VAPID_SUBJECT: is not accepted by push services", hint, id="tailrace.E004")
    if settings.SMS_URL and "/Accounts/" not in urlsplit(settings.SMS_URL).path:
        hint = "Set it to https://…/2010-04-01/Accounts/<SID>/Messages.json."
        yield Error("SMS_URL: has no account in its path", hint, id="tailrace.E005")
    if (path := settings.WEBHOOK_CA_FILE) and not Path(path).is_file():
        yield Error(f"WEBHOOK_CA_FILE: {path!r} is not a file", id="tailrace.E006")


@register("subscriptions")
def check_roles(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return an error for each role that an event type names and no `roles.py` declares."""
    known = [role.name for role in roles.all_roles()]
    return [
        Error(
            f"event type {event_type.name!r} names the role {name!r}, which no roles.py declares"
            f"{did_you_mean(name, known)}",
            id="tailrace_subscriptions.E001",
        )
        for event_type in all_types()
        for name in receiver_roles(event_type)
        if name not in known
    ]
