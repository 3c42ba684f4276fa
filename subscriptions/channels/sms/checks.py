from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register("settings")
def check_account(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that the other SMS_* settings are set if SMS_URL is."""
    if not settings.SMS_URL:
        return []
    errors: list[CheckMessage] = [
        Error(f"{name}: is not set, and SMS_URL needs it", id="tailrace.E003")
        for name in ("SMS_TOKEN", "SMS_FROM")
        if not getattr(settings, name)
    ]
    if "/Accounts/" not in urlsplit(settings.SMS_URL).path:
        hint = "Set it to https://…/2010-04-01/Accounts/<SID>/Messages.json."
        errors.append(Error("SMS_URL: has no account in its path", hint, id="tailrace.E005"))
    return errors
