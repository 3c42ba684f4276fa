"""Add values to a person's watchlist and take them off: the writers of `WatchlistItem`."""

from collections.abc import Sequence

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from tailrace.domains.protection.models import WatchlistItem
from tailrace.domains.protection.watchlist import values
from tailrace.domains.protection.watchlist.values import InvalidValue
from tailrace.net.encryption import DecryptionError, decrypt, encrypt

__all__ = ["InvalidValue", "TooManyItems", "add", "remove", "rewrite", "set_active"]


log = structlog.get_logger(__name__)


class TooManyItems(Exception):
    """The account has as many items as it may; the message says how many."""


@sensitive_variables()
def add(user_id: int, kind: str, text: str) -> WatchlistItem:
    """Watch this value; return its item, which is the old one if it is watched already.

    InvalidValue says what is wrong with the value, TooManyItems that the account is full.
    """
    value = values.normalized(kind, text)
    key = values.value_key(kind, value)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user_id)  # the bound holds
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
    """Delete the item with what scans stored of it; return whether it was there."""
    return bool(WatchlistItem.objects.filter(user=user_id, pk=item_id).delete()[0])


def set_active(user_id: int, item_id: int, active: bool) -> bool:
    """Let scans look the item up, or not; return whether it was there."""
    return bool(WatchlistItem.objects.filter(user=user_id, pk=item_id).update(active=active))


@sensitive_variables()
def rewrite(items: Sequence[WatchlistItem]) -> int:
    """Encrypt and hash the values of these items with the newest keys; return how many changed.

    In the caller's transaction. A value that none of the keys decrypts stays as it is. One that
    was added again under the new hash stays once, with what is known of the older item.
    """
    changed = 0
    for item in items:
        try:
            value = decrypt(item.value)
        except DecryptionError as error:
            log.error("watchlist.unreadable", item=item.pk, reason=str(error))
            continue
        key = values.value_key(item.kind, value)
        same = WatchlistItem.objects.filter(user=item.user_id, kind=item.kind, value_key=key)
        same.exclude(pk=item.pk).delete()
        changed += WatchlistItem.objects.filter(pk=item.pk, value=item.value).update(
            value=encrypt(value), value_key=key, key_ids=values.key_ids()
        )
    return changed
