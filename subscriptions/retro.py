"""retro: deliver what a new or repaired subscription should have brought, after a look at it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from events import clock
from jobs.models import Job
from subscriptions import channels
from subscriptions.audience import Heard, audiences
from subscriptions.handlers import record
from subscriptions.history import events_for
from subscriptions.models import DigestItem, EventSubscription

AT_ONCE = 200


class CannotTell(ValueError):
    """What was delivered so long ago is not known any more."""


@dataclass(slots=True)
class Retro:
    """What a retro-delivery finds: deliveries that are owed, and those that were made before."""

    events: int = 0
    owed: int = 0
    known: int = 0


def retro(
    subscription: EventSubscription, since: datetime, until: datetime | None = None, *,
    deliver: bool = False,
) -> Retro:  # fmt: skip
    """Find what the row brings of the events of [since, until) and was not delivered yet.

    With `deliver`, owe it: safe to repeat. Roles are taken as they are held now. Raises CannotTell
    if `since` lies before the time of which jobs are kept: then nobody knows what was delivered.
    """
    until = until or clock.now()
    horizon = clock.now() - timedelta(days=settings.JOBS_RETENTION_DAYS)
    if since < horizon:
        raise CannotTell(
            f"jobs before {horizon:%Y-%m-%d %H:%M} are pruned (JOBS_RETENTION_DAYS), so what was"
            f" delivered then is not known; choose a later time than {since:%Y-%m-%d %H:%M}"
        )
    found = Retro()
    for page in _pages(subscription, since, until):
        found.events += len({one.event_id for one in page})
        new = _new(page)
        found.owed += len(new)
        found.known += len(page) - len(new)
        if deliver and new:
            record(new)
    return found


def _pages(
    subscription: EventSubscription, since: datetime, until: datetime
) -> Iterator[list[Heard]]:
    batch = []
    for event in events_for(subscription, since, until):
        batch.append(event)
        if len(batch) == AT_ONCE:
            yield [one for one in audiences(batch) if one.subscription == subscription.pk]
            batch = []
    if batch:
        yield [one for one in audiences(batch) if one.subscription == subscription.pk]


def _new(heard: list[Heard]) -> list[Heard]:
    """Return those of which neither a job nor a digest tells that they were delivered."""
    events = {one.event_id for one in heard}
    names = {channel.name: key for key, channel in channels.everything().items()}
    jobs = Job.objects.filter(event_id__in=events, handler__in=names)
    known = {
        (event, names[handler], ":".join(key.split(":")[:2]))
        for event, handler, key in jobs.values_list("event_id", "handler", "routing_key")
    }
    items = DigestItem.objects.filter(event_id__in=events)
    known |= {
        (event, "mail", f"user:{user}" if user else f"group:{group}")
        for event, user, group in items.values_list(
            "event_id", "digest__user_id", "digest__group_id"
        )
    }
    return [one for one in heard if (one.event_id, one.channel, one.recipient) not in known]
