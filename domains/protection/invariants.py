"""The invariants of alerts, watched values, removal requests and files, and their repairs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q

from tailrace.db.query import database_now, query
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import RemovalRequest, WatchlistItem
from tailrace.domains.protection.services import announcing
from tailrace.domains.protection.services.removals import moves
from tailrace.domains.protection.services.removals.brokers import UnknownBroker
from tailrace.domains.protection.services.watchlist import items, values
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.net.encryption import DecryptionError, decrypt, encrypt, newest_key_id

LATE = timedelta(minutes=10)
"""How long a step without a job is overdue before the job counts as lost."""


class FindingsAreAnnounced(Invariant):
    """The user was notified of each exposure, change of a property and move of a removal request
    that needs a notice, or a notice of its alert will name it.

    Repaired: findings that no notice has named, for which notices are sent now.
    """

    name = "protection.findings_are_announced"
    every = 300
    limit = 500
    found_by = announcing.unannounced
    repaired_by = announcing.announce_findings


class NoticesAreSent(Invariant):
    """No notice of an alert is more than ten minutes late.

    Repaired: alerts with a new job that sends the notice.
    """

    name = "protection.notices_are_sent"
    every = 60
    limit = 500
    found_by = announcing.late_alerts
    repaired_by = announcing.announce_again


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


_WITHOUT_JOB = """
SELECT r.id FROM tailrace_protection_removalrequest r
  LEFT JOIN tailrace_jobs_job j ON j.id = r.job_id
WHERE r.next_at < %(before)s
  AND (j.id IS NULL
       OR (j.state NOT IN ('waiting', 'pending', 'running') AND j.finished_at < %(before)s))
ORDER BY r.next_at LIMIT %(limit)s
"""


class RemovalsHaveTheirJob(Invariant):
    """Each removal request whose next step is due has a job for this step.

    Repaired: requests whose step was enqueued again, and requests that were parked because their
    job failed.
    """

    name = "protection.removals_have_their_job"
    every = 60
    limit = 500

    def find(self) -> Sequence[int]:
        rows = query(_WITHOUT_JOB, before=database_now() - LATE, limit=self.limit)
        return [id for (id,) in rows]

    def repair(self, violations: Sequence[int]) -> int:
        rows = RemovalRequest.objects.select_for_update(skip_locked=True, of=("self",))
        count = 0
        for row in rows.filter(pk__in=violations, next_at__isnull=False):
            job = Job.objects.filter(pk=row.job_id or 0).first()
            try:
                if job is not None and job.state in ("failed", "cancelled"):
                    moves.park(row, f"job {job.pk} of its step is {job.state}")
                else:
                    moves.enqueue_again(row)
            except UnknownBroker as error:
                moves.park(row, str(error))
            count += 1
        return count


class RemovalsByNewestKey(Invariant):
    """The personal data in removal requests is encrypted with the newest key.

    Repaired: requests with older keys, which were encrypted again.
    """

    name = "protection.removals_by_newest_key"
    every = 60
    limit = 500

    def find(self) -> Sequence[int]:
        newest = newest_key_id()
        # An index serves `<` and `>`, but not `!=`.
        older = RemovalRequest.objects.filter(Q(key_id__lt=newest) | Q(key_id__gt=newest))
        return list(older.exclude(person="").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        changed = 0
        for row in RemovalRequest.objects.filter(pk__in=violations).exclude(person=""):
            try:
                person = encrypt(decrypt(row.person))
                confirm_url = encrypt(decrypt(row.confirm_url)) if row.confirm_url else ""
            except DecryptionError:  # the old key is missing, but may be configured again
                continue
            unchanged = RemovalRequest.objects.filter(
                pk=row.pk, person=row.person, confirm_url=row.confirm_url
            )
            new = {"person": person, "confirm_url": confirm_url, "key_id": newest_key_id()}
            changed += unchanged.update(**new)
        return changed


class FilesHaveOwners(Invariant):
    """Each stored file that is older than an hour belongs to a report, a recording or a voice.

    Repaired: files without an owner, with new jobs that delete them.
    """

    name = "protection.files_have_owners"
    every = 600
    limit = 500
    found_by = storage.find_unowned
    repaired_by = storage.release_unowned
