"""Channel: a handler with its own queue that brings one event to one recipient."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Handler
from jobs.outcomes import Permanent, Skip
from subscriptions.readable import group_may_read, may_read

if TYPE_CHECKING:
    from subscriptions.audience import Heard
    from subscriptions.models import Notification


@dataclass(frozen=True, slots=True)
class Delivery:
    """A job that brings an event to a recipient: `routing_key` begins with the recipient."""

    heard: "Heard"
    routing_key: str
    lane: str = ""


class Channel(Handler):
    """Write `deliver`, which returns, or raises Retry or Permanent: no channel knows another.

    Event types offer it by `can_<key>`, or by that of the channel it is `offered_like`. Who can be
    reached is said in SQL, since the audience of an event is found by one statement.
    """

    key: ClassVar[str] = ""
    """Its word in subscriptions: mail, rss …"""
    offered_like: ClassVar[str] = ""
    """The channel whose `can_<key>` counts where an event type does not speak of this one."""
    by_default: ClassVar[bool] = True
    """Whether those whom it reaches hear by it unless they chose otherwise."""
    reaches_user: ClassVar[str] = "true"
    """SQL condition on `u`, a row of auth_user."""
    lacking: ClassVar[str] = "there is no way to them"
    """What whoever it does not reach is without, in words."""
    reaches_group: ClassVar[str] = "false"
    """SQL condition on `a`, a group's row of subscriptions_groupaddress (NULLs if it has none):
    true where the group hears as one recipient; else its members hear."""

    @classmethod
    def deliveries(cls, heard: "Iterable[Heard]") -> "Iterator[Delivery]":
        """Yield the jobs that these recipients are owed: one each, where nothing else is said."""
        for one in heard:
            yield Delivery(one, one.recipient)

    def handle(self, job: ClaimedJob) -> Any:
        if job.event is None:
            raise Permanent("the event is gone")
        notification = notification_of(job)
        if not _may_read(notification, job.event):
            raise Skip("the recipient may not read of it any more")
        return self.deliver(job, job.event, notification)

    def deliver(self, job: ClaimedJob, event: Recorded, notification: "Notification") -> Any:
        """Bring the event to the notification's user or group; may run twice after a kill."""
        raise NotImplementedError


def _may_read(notification: "Notification", event: Recorded) -> bool:
    if notification.user is not None:
        return event.id in may_read(notification.user, [event])
    return notification.group is not None and group_may_read(notification.group.name, event)


def notification_of(job: ClaimedJob) -> "Notification":
    """Return the notification that the job delivers; Skip if its recipient left meanwhile."""
    from subscriptions.models import Notification

    kind, number = (*job.routing_key.split(":"), "", "")[:2]
    if kind not in ("user", "group") or not number.isdigit() or job.event is None:
        raise Permanent(f"{job.routing_key!r} names no recipient, as user:ID and group:ID do")
    found = (
        Notification.objects.select_related("user", "group__address")
        .filter(event_id=job.event.id, **{f"{kind}_id": int(number)})
        .first()
    )
    if found is None:
        raise Skip("the recipient is gone")
    if found.user is not None and not found.user.is_active:
        raise Skip("the recipient is not active any more")
    return found


@cache
def everything() -> dict[str, type[Channel]]:
    """Return the channels by key, found in the files of this folder."""
    package = importlib.import_module("subscriptions.channels")
    for info in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{info.name}")
    return {cls.key: cls for cls in sorted(Channel.__subclasses__(), key=lambda cls: cls.key)}


def choices() -> list[tuple[str, str]]:
    return [(key, key) for key in everything()]
