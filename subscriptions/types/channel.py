"""The declarations of channels: their keys, and the users and groups that they reach.

The channels are the handlers in `channels`, a module or package of any installed app.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import ClassVar

from tailrace.environment.discovery import import_modules, subclasses
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A new job that sends an event to a recipient; `routing_key` begins with its RecipientKey."""

    recipient: Recipient
    routing_key: str
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a channel did with an event for a recipient, as it was recorded."""

    state: str
    """One of STATES."""
    how: str = ""
    """Such as `in the daily digest`, or the reason why it was not sent."""
    at: datetime | None = None
    """When it was sent, or will be."""

    STATES: ClassVar[Sequence[str]] = ("sent", "waiting", "failed", "not sent")


class ChannelType:
    """The declarations of a channel.

    An event type offers the channel if its `can_<key>` is true. Without this attribute,
    `can_<offered_like>` decides. The conditions `reaches_user` and `reaches_group` are SQL, since
    one statement finds all recipients.
    """

    name: ClassVar[str]
    """The handler's name."""
    key: ClassVar[str] = ""
    """The channel's name in subscriptions: mail, rss …"""
    offered_like: ClassVar[str] = ""
    """The key of the channel whose `can_<key>` applies to event types without `can_<own key>`."""
    by_default: ClassVar[bool] = True
    """Whether the default subscriptions of this channel are on."""
    reaches_user: ClassVar[str] = "true"
    """SQL condition on `u`, a row of auth_user."""
    unreachable_because: ClassVar[str] = "no address"
    """What a user needs, and lacks, to be reached: a text such as `no mail address`."""
    reaches_group: ClassVar[str] = "false"
    """SQL condition on `a`, a group's row of tailrace_subscriptions_groupaddress (NULLs if it has
    none): whether the group is notified as one recipient. Otherwise its members are notified."""
    has_digests: ClassVar[bool] = False
    """Whether subscriptions may choose hourly, daily or weekly digests."""

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """Yield the jobs for these recipients: one per recipient, unless a channel overrides it."""
        for recipient in recipients:
            yield NewDelivery(recipient, str(recipient.key))

    @classmethod
    def deliveries_without_job(cls, event_ids: Collection[int]) -> set[tuple[int, RecipientKey]]:
        """Return event id and recipient of each delivery that was made or planned without a job."""
        return set()

    @classmethod
    def sent_without_job(cls, event_id: int, keys: Collection[RecipientKey]) -> Iterator[Sent]:
        """Yield the messages about an event to these recipients without a job, such as digests."""
        yield from ()


@cache
def all_channels() -> dict[str, type[ChannelType]]:
    """Return the channels of all installed apps by key."""
    import_modules("channels")
    classes = [cls for cls in subclasses(ChannelType) if cls.__dict__.get("key")]
    return {cls.key: cls for cls in sorted(classes, key=lambda cls: cls.key)}


def channel_choices() -> list[tuple[str, str]]:
    return [(key, key) for key in all_channels()]
