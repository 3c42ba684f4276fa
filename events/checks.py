from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def check_payload_limit(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    limit = settings.EVENTS_MAX_PAYLOAD_BYTES
    if 1024 <= limit <= 16 * 1024 * 1024:
        return []
    return [
        Error(
            f"EVENTS_MAX_PAYLOAD_BYTES is {limit}",
            hint="take a number of bytes from 1024 to 16777216",
            id="events.E001",
        )
    ]
