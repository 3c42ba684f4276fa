"""defaults: the rows that hold for everybody who has chosen nothing.

Each event type that is heard of gets one row per receiver role and channel it offers: on, unless
the role says `by_default=False`. Operators switch them in the admin; a row that is there is left
alone, so to silence one, switch it off rather than delete it.
"""

from collections.abc import Iterator
from typing import Any

from events.types import all_types
from subscriptions import channels, roles
from subscriptions.audible import allows, receiver_roles
from subscriptions.models import EventSubscription

State = EventSubscription.State


def sync(**kwargs: Any) -> None:
    """Make the default rows that are missing. Runs after each migrate."""
    EventSubscription.objects.bulk_create(_rows(), ignore_conflicts=True)


def _rows() -> Iterator[EventSubscription]:
    for event_type in all_types():
        for name in receiver_roles(event_type):
            role = roles.find(name)
            for channel, how in channels.everything().items():
                if role is not None and allows(event_type, channel):
                    yield EventSubscription(
                        event_type=event_type.name,
                        role=name,
                        channel=channel,
                        state=State.ON if role.by_default and how.by_default else State.OFF,
                    )
