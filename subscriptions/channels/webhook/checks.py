from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register("settings")
def check_ca_file(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    path = settings.WEBHOOK_CA_FILE
    if not path or Path(path).is_file():
        return []
    return [Error(f"WEBHOOK_CA_FILE: {path!r} is not a file", id="tailrace.E006")]
