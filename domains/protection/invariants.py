"""What must be true of watched values and their scans."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from domains.protection import watched_values, watchlist
from domains.protection.models import WatchlistItem
from jobs.maintenance.invariant import Invariant


class ValuesByNewestKeys(Invariant):
    """Watched values are encrypted and hashed with the newest keys.

    Repaired: values of older keys that were written again.
    """

    name = "protection.values_by_newest_keys"
    every = 60
    limit = 500

    def find(self) -> Sequence[Any]:
        newest = watched_values.key_ids()
        # An index finds what is less or greater, but not what is unequal.
        older = WatchlistItem.objects.filter(Q(key_ids__lt=newest) | Q(key_ids__gt=newest))
        return list(older.order_by("pk").select_for_update(skip_locked=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        return watchlist.rewrite(violations)
