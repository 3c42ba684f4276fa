"""digests: what is not mailed at once is kept for one mail at the end of a window."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db import transaction

from events import clock
from jobs import bucket
from jobs.enqueue import enqueue_many
from jobs.models import Job
from subscriptions.audience import Heard
from subscriptions.models import Digest, DigestItem, EventSubscription, Preferences
from subscriptions.windows import window_end

Pace = EventSubscription.Pace
Whose = tuple[int | None, int | None, str]
"""User id, group id, pace."""

SECONDS = 600.0
"""The window in which one person gets MAIL_BURST mails at once; what is more comes in a digest."""
AT_ONCE = 1000


def keep(heard: Sequence[Heard]) -> list[Heard]:
    """Keep for digests what of these is not to be mailed at once; return the others.

    In the caller's transaction. Done again, it keeps nothing twice and counts nobody twice.
    """
    mailed, kept = _known(heard)
    at_once = [one for one in heard if (one.event_id, one.recipient) in mailed]
    fresh = [
        one
        for one in heard
        if (one.event_id, one.recipient) not in mailed
        and (one.event_id, one.user_id, one.group_id) not in kept
    ]
    left, later = _allowed(fresh), []
    for one in fresh:
        if one.pace != Pace.INSTANT:
            later.append(one)
        elif one.user_id is None or left[one.recipient] > 0:
            left[one.recipient] = left.get(one.recipient, 0) - 1
            at_once.append(one)
        else:
            later.append(replace(one, pace=Pace.HOURLY))
    _collect(later)
    return at_once


def _known(
    heard: Sequence[Heard],
) -> tuple[set[tuple[int, str]], set[tuple[int, int | None, int | None]]]:
    """Return what an earlier try has done: mails that are owed, items that are kept."""
    events = {one.event_id for one in heard}
    mailed = Job.objects.filter(event_id__in=events, handler="subscriptions.mail")
    kept = DigestItem.objects.filter(event_id__in=events)
    return (
        {(event, key) for event, key in mailed.values_list("event_id", "routing_key") if event},
        set(kept.values_list("event_id", "digest__user_id", "digest__group_id")),
    )


def _allowed(heard: Sequence[Heard]) -> dict[str, int]:
    """By user: how many of these mails may go out at once. Groups have no limit."""
    wanted: dict[str, int] = {}
    for one in heard:
        if one.user_id is not None and one.pace == Pace.INSTANT:
            wanted[one.recipient] = wanted.get(one.recipient, 0) + 1
    granted = bucket.allow(
        {f"mail:{name}": count for name, count in wanted.items()}, settings.MAIL_BURST, SECONDS
    )
    return {name.removeprefix("mail:"): count for name, count in granted.items()}


def _collect(heard: Sequence[Heard]) -> None:
    """Put these into the digests of their recipients, and owe each digest its mail."""
    if not heard:
        return
    now = clock.now()
    ends = _ends(heard, now)
    digests = _open(ends)
    # One that was sent a moment ago takes nothing more: what is left goes to the next window.
    late = {whose: ends[whose] for whose in ends if whose not in digests}
    if late:
        digests |= _open({whose: _next(whose, end) for whose, end in late.items()})
    DigestItem.objects.bulk_create(
        [
            DigestItem(digest=digests[_whose(one)], event_id=one.event_id, role=one.role)
            for one in heard
        ],
        ignore_conflicts=True,
        batch_size=AT_ONCE,
    )
    owe(list(digests.values()))


def owe(digests: Sequence[Digest]) -> int:
    """Owe each of these digests its mail, once; return how many were new."""
    return enqueue_many(
        "subscriptions.digest",
        [
            {"payload": {"digest": one.pk}, "due_at": one.window_end, "unique_key": str(one.pk)}
            for one in digests
        ],
    )


def _whose(one: Heard) -> Whose:
    return (one.user_id, one.group_id, one.pace)


def _ends(heard: Sequence[Heard], now: datetime) -> dict[Whose, datetime]:
    known = Preferences.objects.in_bulk({one.user_id for one in heard if one.user_id})
    return {
        _whose(one): window_end(now, one.pace, known.get(one.user_id or 0) or Preferences())
        for one in heard
    }


def _next(whose: Whose, end: datetime) -> datetime:
    user, _group, pace = whose
    known = Preferences.objects.filter(pk=user).first() or Preferences()
    return window_end(end, pace, known)


def _open(ends: dict[Whose, datetime]) -> dict[Whose, Digest]:
    """Return the unsent digests of these windows, made where there was none, held open.

    The lock keeps a worker from marking one as sent before what is put into it is committed.
    """
    Digest.objects.bulk_create(
        [
            Digest(user_id=user, group_id=group, pace=pace, window_end=end)
            for (user, group, pace), end in ends.items()
        ],
        ignore_conflicts=True,
        batch_size=AT_ONCE,
    )
    users = {user for user, _, _ in ends if user}
    groups = {group for _, group, _ in ends if group}
    rows = Digest.objects.filter(window_end__in=set(ends.values()), sent_at=None).order_by("pk")
    found = [
        *rows.filter(user__in=users).select_for_update(no_key=True),
        *rows.filter(group__in=groups).select_for_update(no_key=True),
    ]
    return {
        whose: one
        for one in found
        if ends.get(whose := (one.user_id, one.group_id, one.pace)) == one.window_end
    }


@transaction.atomic
def sent(digest: Digest, told: Sequence[int]) -> int:
    """Mark a digest as sent; what came in since its items `told` were read goes to the next one.

    Returns how many that were.
    """
    Digest.objects.select_for_update().get(pk=digest.pk)
    late = DigestItem.objects.filter(digest=digest).exclude(pk__in=told)
    Digest.objects.filter(pk=digest.pk).update(sent_at=clock.now())
    items = list(late)
    if items:
        _collect(
            [
                Heard(
                    item.event_id, "mail", digest.user_id, digest.group_id, item.role, digest.pace
                )
                for item in items
            ]
        )
        late.delete()
    return len(items)
