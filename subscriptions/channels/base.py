"""The base class of channels, and the checks of a job before its event is sent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from tailrace.events.privacy.visibility import admits
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.hidden import readers_of_jobs
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.types.channel import ChannelType
from tailrace.subscriptions.types.recipient import RecipientKey, address_id


class Channel(ChannelType, Handler):
    """A way to reach users. A subclass implements `deliver`, and imports no other channel."""

    def handle(self, job: ClaimedJob) -> Any:
        for item in deliverable_jobs([job], groups=True):
            return self.deliver(job, item.event, item.notification)
        raise job.outcome

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        """Deliver the event, or raise Retry or Permanent. Runs again if the worker was killed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A job that may be delivered, with its event and notification."""

    job: ClaimedJob
    event: Recorded
    notification: Notification

    @property
    def user_id(self) -> int:
        """The user's id; 0 for a group."""
        return self.notification.user_id or 0

    @property
    def address_id(self) -> int:
        """The id of the endpoint or device in the routing key, or 0."""
        return address_id(self.job.routing_key)


def deliverable_jobs(jobs: Sequence[ClaimedJob], *, groups: bool = False) -> Iterator[Deliverable]:
    """Yield the jobs that may be delivered, and set the outcome of the others. Without `groups`,
    jobs for a group fail."""
    keys = {job: RecipientKey.parse(job.routing_key) for job in jobs}
    notifications = _notifications(jobs, [key for key in keys.values() if key])
    restricted = readers_of_jobs(jobs)
    for job, key in keys.items():
        event = job.require_event()
        if job.outcome is not None:
            continue
        if key is None or not (key.user_id or groups):
            job.fail(f"{job.routing_key!r} names no recipient, such as user:ID or group:ID")
        elif (notification := notifications.get((event.id, key))) is None:
            job.skip("the recipient was deleted")
        elif notification.user is not None and not notification.user.is_active:
            job.skip("the recipient is no longer active")
        elif not admits(restricted.get(event.id), notification.user, notification.group):
            job.skip("the recipient may no longer read the event")
        else:
            yield Deliverable(job, event, notification)


def _notifications(
    jobs: Iterable[ClaimedJob], keys: Sequence[RecipientKey]
) -> dict[tuple[int, RecipientKey], Notification]:
    """Return the notifications of these recipients, by event and recipient."""
    recipients = Q(user__in={key.user_id for key in keys}) | Q(
        group__in={key.group_id for key in keys}
    )
    rows = Notification.objects.filter(
        recipients, event__in={job.require_event().id for job in jobs}
    )
    return {
        (row.event_id, RecipientKey(row.user_id, row.group_id)): row
        for row in rows.select_related("user", "group__address")
    }
