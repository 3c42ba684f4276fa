"""Switch a channel off for some topics with one click, and undo it with another. The settings
before are in a signed text, the undo token; the database does not store them."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction

from tailrace.subscriptions.models import EventSubscription

MAX_AGE = 7 * 86_400
"""Seconds for which an undo token is valid."""
_SALT = "tailrace.mute"
_FIELDS = ("state", "pace", "subject_pattern")
_OFF = (EventSubscription.State.OFF.value, EventSubscription.Pace.INSTANT.value, "")

_Setting = tuple[str, str, str]
"""The values of _FIELDS."""


@transaction.atomic
def mute(user: User, channel: str, topics: Sequence[tuple[str, str]]) -> str:
    """Switch the channel off for each event type and role; safe to repeat. Return the undo token,
    or an empty text if the channel was off for all of them."""
    before: list[tuple[str, str, _Setting | None]] = []
    for event_type, role in topics:
        key = EventSubscription.own_key(user, event_type, role, channel)
        rows = EventSubscription.objects.filter(**key).select_for_update()
        row = rows.values_list(*_FIELDS).first()
        if row != _OFF:
            before.append((event_type, role, row))
            off = dict(zip(_FIELDS, _OFF, strict=True))
            EventSubscription.objects.update_or_create(**key, defaults=off)
    return signing.dumps([user.pk, channel, before], salt=_SALT, compress=True) if before else ""


@transaction.atomic
def unmute(user: User, undo: str) -> bool:
    """Restore the settings in the undo token, except settings that were changed after muting.
    Return False if the token is invalid, expired, or belongs to another user."""
    try:
        owner, channel, before = signing.loads(undo, salt=_SALT, max_age=MAX_AGE)
    except signing.BadSignature:
        return False
    if owner != user.pk:
        return False
    for event_type, role, values in before:
        key = EventSubscription.own_key(user, event_type, role, channel)
        rows = EventSubscription.objects.filter(**key, **dict(zip(_FIELDS, _OFF, strict=True)))
        if values is None:
            rows.delete()
        else:
            rows.update(**dict(zip(_FIELDS, values, strict=True)))
    return True
