"""What the rest of subscriptions needs to know of a channel: its key, and whom it reaches.

The channels themselves are the handlers in `channels`, a module or package of any installed app.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from tailrace.events.discovery import import_modules, subclasses
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A job that brings an event to a recipient: `routing_key` begins with the recipient."""

    recipient: Recipient
    routing_key: str
    lane: str = ""


class ChannelType:
    """The declarations of a channel.

    Event types offer it by `can_<key>`, or by that of the channel it is `offered_like`. Whom it
    reaches is SQL, since the audience of an event is found by one statement.
    """

    name: ClassVar[str]
    """The handler's name."""
    key: ClassVar[str] = ""
    """Its name in subscriptions: mail, rss …"""
    offered_like: ClassVar[str] = ""
    """The channel whose `can_<key>` counts where an event type has none for this one."""
    by_default: ClassVar[bool] = True
    """Whether the default rows for it are on."""
    reaches_user: ClassVar[str] = "true"
    """SQL condition on `u`, a row of auth_user."""
    unreachable_because: ClassVar[str] = "there is no way to reach them"
    """What a user whom it does not reach is missing, in words."""
    reaches_group: ClassVar[str] = "false"
    """SQL condition on `a`, a group's row of tailrace_subscriptions_groupaddress (NULLs if it has
    none): true where the group is notified as one recipient; else its members are notified."""
    has_digests: ClassVar[bool] = False
    """Whether subscriptions may choose hourly, daily or weekly digests."""

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """Yield the jobs for these recipients: one each, unless a channel overrides it."""
        for recipient in recipients:
            yield NewDelivery(recipient, str(recipient.key))

    @classmethod
    def deliveries_without_job(cls, event_ids: Collection[int]) -> set[tuple[int, RecipientKey]]:
        """Return the event and recipient of deliveries that were made or planned without a job."""
        return set()


@cache
def all_channels() -> dict[str, type[ChannelType]]:
    """Return the channels of all installed apps by key."""
    import_modules("channels")
    classes = [cls for cls in subclasses(ChannelType) if cls.__dict__.get("key")]
    return {cls.key: cls for cls in sorted(classes, key=lambda cls: cls.key)}


def channel_choices() -> list[tuple[str, str]]:
    return [(key, key) for key in all_channels()]
