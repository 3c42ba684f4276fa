"""Collect events that are not mailed at once, for one mail at the end of a window."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from tailrace.db import clock
from tailrace.db.query import database_now
from tailrace.jobs.destinations import rate_limit
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Digest, DigestItem, EventSubscription, Preferences
from tailrace.subscriptions.types.channel import Sent
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey
from tailrace.web.accounts.time_zones import zone_named

Pace = EventSubscription.Pace
DigestKey = tuple[RecipientKey, str]
"""The recipient and the pace."""

BURST_SECONDS = 600.0
"""In this time a user gets at most MAIL_BURST single mails; further events go to a digest. Urgent
events do not count."""
BATCH_SIZE = 1000


def collect(recipients: Sequence[Recipient]) -> list[Recipient]:
    """Add events to digests where no single mail is to be sent; return the other recipients. Safe
    to repeat: a repeated recipient is neither added nor counted again."""
    # An earlier attempt may have created jobs of mails, and items of digests.
    events = {recipient.event_id for recipient in recipients}
    jobs = Job.objects.filter(event_id__in=events, handler="subscriptions.mail")
    mailed = {
        (event, RecipientKey.parse(routing_key))
        for event, routing_key in jobs.values_list("event_id", "routing_key")
    }
    at_once = [row for row in recipients if (row.event_id, row.key) in mailed]
    known, later = mailed | collected(events), []
    new = [row for row in recipients if (row.event_id, row.key) not in known]
    allowed = _allowed_at_once(new)
    for recipient in new:
        if recipient.pace != Pace.INSTANT:
            later.append(recipient)
        elif recipient.user_id is None or recipient.urgent:
            at_once.append(recipient)
        elif allowed[recipient.key] > 0:
            allowed[recipient.key] -= 1
            at_once.append(recipient)
        else:
            later.append(replace(recipient, pace=Pace.HOURLY))
    _add_items(later)
    return at_once


def collected(event_ids: Collection[int]) -> set[tuple[int, RecipientKey]]:
    """Return event id and recipient of the digest items of these events."""
    items = DigestItem.objects.filter(event_id__in=event_ids)
    rows = items.values_list("event_id", "digest__user_id", "digest__group_id")
    return {(event, RecipientKey(user, group)) for event, user, group in rows}


def sent(event_id: int, keys: Collection[RecipientKey]) -> Iterator[Sent]:
    """Yield the digests of these recipients that have the event."""
    owner = Q(digest__user__in=[key.user_id for key in keys if key.user_id]) | Q(
        digest__group__in=[key.group_id for key in keys if key.group_id]
    )
    for item in DigestItem.objects.filter(owner, event=event_id).select_related("digest"):
        digest, how = item.digest, f"in the {item.digest.pace} digest"
        yield Sent(
            "sent" if digest.sent_at else "waiting", how, digest.sent_at or digest.window_end
        )


def _allowed_at_once(recipients: Sequence[Recipient]) -> dict[RecipientKey, int]:
    """Return by user the number of these mails that may be sent at once. Groups and urgent events
    have no limit."""
    limited = [row for row in recipients if row.user_id is not None and not row.urgent]
    at_once = [row for row in limited if row.pace == Pace.INSTANT]
    counts = Counter(f"mail:{row.key}" for row in at_once)
    allowed = rate_limit.take_from_window(counts, settings.MAIL_BURST, BURST_SECONDS)
    return {row.key: allowed[f"mail:{row.key}"] for row in at_once}


def _add_items(recipients: Sequence[Recipient]) -> None:
    """Add the events to the digests of their recipients, and enqueue the mail of each digest."""
    if not recipients:
        return
    now = database_now()
    ends = _window_ends({(row.key, row.pace): now for row in recipients})
    digests = _open_digests(ends)
    # A digest may have been sent a moment ago: its items are added to the next window.
    if closed := {key: end for key, end in ends.items() if key not in digests}:
        digests |= _open_digests(_window_ends(closed))
    items = [
        DigestItem(digest=digests[row.key, row.pace], event_id=row.event_id, role=row.role)
        for row in recipients
    ]
    DigestItem.objects.bulk_create(items, BATCH_SIZE, ignore_conflicts=True)
    enqueue_digests(list(digests.values()))


def enqueue_digests(digests: Sequence[Digest]) -> int:
    """Enqueue one mail per digest, unless it has a job; return the number of new jobs."""
    rows = [
        {"payload": {"digest": row.pk}, "due_at": row.window_end, "unique_key": str(row.pk)}
        for row in digests
    ]
    return enqueue_many("subscriptions.digest", rows)


def _window_ends(times: Mapping[DigestKey, datetime]) -> dict[DigestKey, datetime]:
    """Return for each recipient and pace the end of the window that contains the time."""
    preferences = Preferences.objects.in_bulk({key.user_id for key, _pace in times if key.user_id})
    return {
        (key, pace): window_end(time, pace, preferences.get(key.user_id or 0) or Preferences())
        for (key, pace), time in times.items()
    }


def window_end(now: datetime, pace: str, preferences: Preferences) -> datetime:
    """Return the end of the window that contains `now` (aware): the next time of that pace. If a
    change of clocks skips the time, it is later; if it occurs twice, the first counts."""
    if pace == Pace.HOURLY:
        return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    zone = zone_named(preferences.time_zone)
    day = now.astimezone(zone).date()
    if pace == Pace.WEEKLY:
        day += timedelta((preferences.digest_weekday - day.weekday()) % 7)
    next_day = day + timedelta(7 if pace == Pace.WEEKLY else 1)
    ends = (datetime.combine(each, preferences.digest_at, zone) for each in (day, next_day))
    return next(end for end in (at.astimezone(UTC) for at in ends) if end > now)


def _open_digests(ends: dict[DigestKey, datetime]) -> dict[DigestKey, Digest]:
    """Create missing digests of these windows, and return the unsent ones. They are locked, so that
    no worker marks a digest as sent before the new items are committed."""
    new = [
        Digest(user_id=key.user_id, group_id=key.group_id, pace=pace, window_end=end)
        for (key, pace), end in ends.items()
    ]
    Digest.objects.bulk_create(new, BATCH_SIZE, ignore_conflicts=True)
    users = {key.user_id for key, _pace in ends if key.user_id}
    groups = {key.group_id for key, _pace in ends if key.group_id}
    unsent = Digest.objects.filter(window_end__in=set(ends.values()), sent_at=None).order_by("pk")
    digests = [
        *unsent.filter(user__in=users).select_for_update(no_key=True),
        *unsent.filter(group__in=groups).select_for_update(no_key=True),
    ]
    return {
        key: digest
        for digest in digests
        if ends.get(key := (RecipientKey(digest.user_id, digest.group_id), digest.pace))
        == digest.window_end
    }


@transaction.atomic
def mark_sent(digest: Digest, last_item: int) -> int:
    """Mark a digest as sent, and move the items after `last_item` to the next; return how many."""
    Digest.objects.select_for_update().get(pk=digest.pk)
    late = DigestItem.objects.filter(digest=digest, pk__gt=last_item)
    Digest.objects.filter(pk=digest.pk).update(sent_at=clock.now())
    recipients = [
        Recipient(item.event_id, "mail", digest.user_id, digest.group_id, item.role, digest.pace)
        for item in late
    ]
    if recipients:
        _add_items(recipients)
        late.delete()
    return len(recipients)
