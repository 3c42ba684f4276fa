import re
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, register

SUBJECT = re.compile(r"(mailto:[^@\s]+@(localhost|[\w-]+(\.[\w-]+)+)|https://[\w-]+\.[\w.-]+)?")
"""Of VAPID_SUBJECT, as py_vapid accepts it."""


@register("settings")
def check_subject(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.VAPID_PRIVATE_KEY and not settings.VAPID_SUBJECT:
        message = "VAPID_SUBJECT: is not set, and VAPID_PRIVATE_KEY needs it"
        return [Error(message, id="tailrace.E003")]
    if not SUBJECT.fullmatch(settings.VAPID_SUBJECT):
        hint = "Set it to mailto:you@example.org or https://example.org."
        message = "VAPID_SUBJECT: is not accepted by push services"
        return [Error(message, hint, id="tailrace.E004")]
    return []


@register("settings", deploy=True)
def check_key(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.VAPID_PRIVATE_KEY:
        return []
    message = "VAPID_PRIVATE_KEY: is not set, so no push messages are sent"
    return [Info(message, "Make a key by `manage.py make_vapid_keys`.", id="tailrace.I101")]
