"""The default subscriptions, which apply to users and groups without a subscription of their own.

Each subscribable event type gets one row per receiver role and offered channel. The row is on,
unless the role or the channel has `by_default = False`. Its pace is the type's `default_pace`, if
the channel has digests. Operators edit the rows in the admin. An existing row is never changed
here, but a deleted one is created again: switch it off instead.
"""

from collections.abc import Iterator
from typing import Any

from tailrace.db.query import query
from tailrace.events.types import all_types
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.subscribable import offered_channels, receiver_roles

State = EventSubscription.State
TABLE = EventSubscription._meta.db_table


def create_missing(**kwargs: Any) -> None:
    """Create the missing default rows. Runs after each `migrate`."""
    [(migrated,)] = query("SELECT to_regclass(%(table)s) IS NOT NULL", table=TABLE)
    if migrated:  # false after `migrate tailrace_subscriptions zero`
        EventSubscription.objects.bulk_create(_rows(), ignore_conflicts=True)


def _rows() -> Iterator[EventSubscription]:
    for event_type in all_types():
        for name in receiver_roles(event_type):
            role = roles.find(name)
            if role is None:
                continue
            for key in offered_channels(event_type):
                channel = all_channels()[key]
                on = role.by_default and channel.by_default
                pace = getattr(event_type, "default_pace", EventSubscription.Pace.INSTANT)
                yield EventSubscription(
                    event_type=event_type.name,
                    role=name,
                    channel=key,
                    state=State.ON if on else State.OFF,
                    pace=pace if channel.has_digests else EventSubscription.Pace.INSTANT,
                )
