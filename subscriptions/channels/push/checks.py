import re
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SUBJECT = re.compile(r"(mailto:[^@\s]+@(localhost|[\w-]+(\.[\w-]+)+)|https://[\w-]+\.[\w.-]+)?")
"""The pattern of VAPID_SUBJECT: the values that py_vapid accepts."""


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
