from typing import Any

from django.core.checks import CheckMessage, Error, register

from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import all_types
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.subscribable import receiver_roles


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
