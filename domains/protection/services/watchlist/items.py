"""Add values to a person's watchlist and remove them. This module is the only writer of
`WatchlistItem`."""

from collections.abc import Sequence

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from tailrace.domains.protection.models import WatchlistItem
from tailrace.domains.protection.services.watchlist import values
from tailrace.net.encryption import DecryptionError, decrypt, encrypt

log = structlog.get_logger(__name__)


class TooManyItems(Exception):
    """The account has its maximum of items, which the message names."""


@sensitive_variables()
def add(user_id: int, kind: str, text: str) -> WatchlistItem:
    """Watch this value; return its item. If the value is watched already, return the existing item.

    Raises InvalidValue or TooManyItems.
    """
    value = values.normalized(kind, text)
    key = values.value_key(kind, value)
    with transaction.atomic():
        # One at a time, so that the maximum holds.
        User.objects.select_for_update(no_key=True).get(pk=user_id)
        items = WatchlistItem.objects.filter(user=user_id)
        if (old := items.filter(kind=kind, value_key=key).first()) is not None:
            return old
        if items.count() >= settings.PROTECTION_MAX_ITEMS_PER_USER:
            raise TooManyItems(
                f"You watch {settings.PROTECTION_MAX_ITEMS_PER_USER} values, the maximum: remove"
                " one first (PROTECTION_MAX_ITEMS_PER_USER)."
            )
        return WatchlistItem.objects.create(
            user_id=user_id,
            kind=kind,
            value=encrypt(value),
            value_key=key,
            masked=values.masked(kind, value),
            key_ids=values.key_ids(),
        )


def remove(user_id: int, item_id: int) -> bool:
    """Delete the item with the results of its scans; return whether it existed."""
    return bool(WatchlistItem.objects.filter(user=user_id, pk=item_id).delete()[0])


def set_active(user_id: int, item_id: int, active: bool) -> bool:
    """Let scans look up the item or leave it out; return whether it exists."""
    return bool(WatchlistItem.objects.filter(user=user_id, pk=item_id).update(active=active))


@sensitive_variables()
def rewrite(items: Sequence[WatchlistItem]) -> int:
    """Encrypt and hash the values of these items with the newest keys; return how many changed.

    Runs in the caller's transaction. A value that no key decrypts is left unchanged. If the value
    was added again under the new hash, the newer item is deleted and the older one kept.
    """
    changed = 0
    for item in items:
        try:
            value = decrypt(item.value)
        except DecryptionError as error:
            log.error("watchlist.unreadable", item=item.pk, reason=str(error))
            continue
        key = values.value_key(item.kind, value)
        duplicates = WatchlistItem.objects.filter(user=item.user_id, kind=item.kind, value_key=key)
        duplicates.exclude(pk=item.pk).delete()
        changed += WatchlistItem.objects.filter(pk=item.pk, value=item.value).update(
            value=encrypt(value), value_key=key, key_ids=values.key_ids()
        )
    return changed
