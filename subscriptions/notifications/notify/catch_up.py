"""Deliver the past events that match a new or repaired subscription, or only count them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from math import isfinite

from django.conf import settings

from tailrace.db.query import database_now
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.history import events_for
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tailrace.subscriptions.notifications.notify.notifications import notify_recipients
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey

PAGE_SIZE = 200


@dataclass(slots=True)
class CatchUp:
    """The numbers of matching events, of missing deliveries, and of deliveries made before."""

    events: int = 0
    missing: int = 0
    delivered: int = 0


def catch_up(subscription: EventSubscription, since: datetime, *, deliver: bool = False) -> CatchUp:
    """Count the subscription's missing deliveries of the events recorded since then, by the current
    roles. With `deliver`, enqueue them; this is safe to repeat. Raise ValueError if `since` is
    before the period for which jobs are kept."""
    now = database_now()
    oldest = now - timedelta(days=settings.JOBS_RETENTION_DAYS)
    if since < oldest:
        raise ValueError(
            f"jobs before {oldest:%Y-%m-%d %H:%M:%S} UTC are deleted (JOBS_RETENTION_DAYS), so"
            " the deliveries before that time are unknown; choose a later start than"
            f" {since:%Y-%m-%d %H:%M:%S} UTC"
        )
    result = CatchUp()
    events = events_for(subscription, since, now)
    while batch := list(islice(events, PAGE_SIZE)):
        page = [row for row in audiences(batch) if row.subscription_id == subscription.pk]
        result.events += len({recipient.event_id for recipient in page})
        missing = _undelivered(page)
        result.missing += len(missing)
        result.delivered += len(page) - len(missing)
        if deliver and missing:
            notify_recipients(missing)
    return result


def _undelivered(recipients: list[Recipient]) -> list[Recipient]:
    """Return the recipients that have neither a job nor another record of a delivery."""
    events = {recipient.event_id for recipient in recipients}
    channels = {channel.name: key for key, channel in all_channels().items()}
    jobs = Job.objects.filter(event_id__in=events, handler__in=channels)
    delivered = {
        (event, channels[handler], RecipientKey.parse(routing_key))
        for event, handler, routing_key in jobs.values_list("event_id", "handler", "routing_key")
    }
    delivered |= {
        (event, key, recipient)
        for key, channel in all_channels().items()
        for event, recipient in channel.deliveries_without_job(events)
    }
    return [row for row in recipients if (row.event_id, row.channel, row.key) not in delivered]


def days_ago(text: str) -> datetime:
    """Return the time `text` days ago; raise ValueError if the text is not a number above 0."""
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not (isfinite(days) and 0 < days <= 3650):
        raise ValueError(f"{text!r} is not a number of days above 0, such as 7")
    return database_now() - timedelta(days=days)
