from typing import Any

from django.core.checks import CheckMessage, Error, register

from events.suggest import did_you_mean
from events.types import all_types
from subscriptions import roles
from subscriptions.audible import receiver_roles


@register()
def check_roles(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each role that an event type names is declared."""
    known = [role.name for role in roles.everything()]
    return [
        Error(
            f"event type {one.name!r} names the role {name!r}, which no roles.py declares"
            f"{did_you_mean(name, known)}",
            id="subscriptions.E001",
        )
        for one in all_types()
        for name in receiver_roles(one)
        if name not in known
    ]
