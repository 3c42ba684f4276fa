"""Channel: a handler with its own queue that brings one event to one recipient."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Handler
from jobs.outcomes import Permanent, Skip

if TYPE_CHECKING:
    from subscriptions.models import Notification


class Channel(Handler):
    """Write `deliver`, which returns, or raises Retry or Permanent: no channel knows another.

    Event types offer it by `can_<key>`. Who can be reached is said in SQL, since the audience of
    an event is found by one statement.
    """

    key: ClassVar[str] = ""
    """Its word in subscriptions: mail, rss …"""
    reaches_user: ClassVar[str] = "true"
    """SQL condition on `u`, a row of auth_user."""
    reaches_group: ClassVar[str] = "false"
    """SQL condition on `a`, a group's row of subscriptions_groupaddress: true where the group
    hears as one recipient; else its members hear."""

    def handle(self, job: ClaimedJob) -> Any:
        if job.event is None:
            raise Permanent("the event is gone")
        return self.deliver(job, job.event, notification_of(job))

    def deliver(self, job: ClaimedJob, event: Recorded, notification: "Notification") -> Any:
        """Bring the event to the notification's user or group; may run twice after a kill."""
        raise NotImplementedError


def notification_of(job: ClaimedJob) -> "Notification":
    """Return the notification that the job delivers; Skip if its recipient left meanwhile."""
    from subscriptions.models import Notification

    kind, _, number = job.routing_key.partition(":")
    if kind not in ("user", "group") or not number.isdigit() or job.event is None:
        raise Permanent(f"{job.routing_key!r} is no recipient; user:ID and group:ID are")
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
