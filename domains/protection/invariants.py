"""What must be true of watched values and their scans."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import WatchlistItem
from tailrace.domains.protection.removals import repairs
from tailrace.domains.protection.watchlist import items, values
from tailrace.jobs.maintenance.invariant import Invariant


class ValuesByNewestKeys(Invariant):
    """Watched values are encrypted and hashed with the newest keys.

    Repaired: values of older keys that were written again.
    """

    name = "protection.values_by_newest_keys"
    every = 60
    limit = 500

    def find(self) -> Sequence[Any]:
        newest = values.key_ids()
        # An index finds what is less or greater, but not what is unequal.
        older = WatchlistItem.objects.filter(Q(key_ids__lt=newest) | Q(key_ids__gt=newest))
        return list(older.order_by("pk").select_for_update(skip_locked=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        return items.rewrite(violations)


class RemovalsHaveTheirJob(Invariant):
    """A job does the next step of each removal request that is due.

    Repaired: requests whose step was enqueued again; those whose job failed are parked.
    """

    name = "protection.removals_have_their_job"
    every = 60
    limit = 500

    def find(self) -> Sequence[Any]:
        return repairs.without_job(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.go_on(violations)


class RemovalsByNewestKey(Invariant):
    """What removal requests hold of people is encrypted with the newest key.

    Repaired: requests of older keys that were written again.
    """

    name = "protection.removals_by_newest_key"
    every = 60
    limit = 500

    def find(self) -> Sequence[Any]:
        return repairs.of_older_keys(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.encrypt_again(violations)


class FilesHaveOwners(Invariant):
    """Each stored file belongs to a report or a recording, but for those of the last hour.

    Repaired: files that jobs delete.
    """

    name = "protection.files_have_owners"
    every = 600
    limit = 500

    def find(self) -> Sequence[Any]:
        return storage.find_unowned(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        storage.release(violations)
        return len(violations)
