"""The invariants of watched values, removal requests and stored files."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import WatchlistItem
from tailrace.domains.protection.services.removals import repairs
from tailrace.domains.protection.services.watchlist import items, values
from tailrace.jobs.runtime.invariant import Invariant


class ValuesByNewestKeys(Invariant):
    """Watched values are encrypted and hashed with the newest keys.

    Repaired: values with older keys, which were encrypted and hashed again.
    """

    name = "protection.values_by_newest_keys"
    every = 60
    limit = 500
    repaired_by = items.rewrite

    def find(self) -> Sequence[Any]:
        newest = values.key_ids()
        # An index serves `<` and `>`, but not `!=`.
        older = WatchlistItem.objects.filter(Q(key_ids__lt=newest) | Q(key_ids__gt=newest))
        return list(older.order_by("pk").select_for_update(skip_locked=True)[: self.limit])


class RemovalsHaveTheirJob(Invariant):
    """Each removal request whose next step is due has a job for this step.

    Repaired: requests whose step was enqueued again, and requests that were parked because their
    job failed.
    """

    name = "protection.removals_have_their_job"
    every = 60
    limit = 500
    found_by = repairs.requests_without_job
    repaired_by = repairs.enqueue_or_park


class RemovalsByNewestKey(Invariant):
    """The personal data in removal requests is encrypted with the newest key.

    Repaired: requests with older keys, which were encrypted again.
    """

    name = "protection.removals_by_newest_key"
    every = 60
    limit = 500
    found_by = repairs.requests_with_older_keys
    repaired_by = repairs.encrypt_again


class FilesHaveOwners(Invariant):
    """Each stored file that is older than an hour belongs to a report, a recording or a voice.

    Repaired: files without an owner, for which jobs were enqueued that delete them.
    """

    name = "protection.files_have_owners"
    every = 600
    limit = 500
    found_by = storage.find_unowned
    repaired_by = storage.release_unowned
