"""Find and repair removal requests without a job, or with data that is encrypted with an old
key."""

from collections.abc import Sequence
from datetime import timedelta

from tailrace.db.query import database_now, query
from tailrace.domains.protection.models import RemovalRequest
from tailrace.domains.protection.services.removals import moves
from tailrace.domains.protection.services.removals.brokers import UnknownBroker
from tailrace.jobs.models import Job
from tailrace.net.encryption import DecryptionError, decrypt, encrypt, newest_key_id

LATE = timedelta(minutes=10)
"""How long a step without a job is overdue before the job counts as lost."""

_WITHOUT_JOB = """
SELECT r.id FROM tailrace_protection_removalrequest r
  LEFT JOIN tailrace_jobs_job j ON j.id = r.job_id
WHERE r.next_at < %(before)s
  AND (j.id IS NULL
       OR (j.state NOT IN ('waiting', 'pending', 'running') AND j.finished_at < %(before)s))
ORDER BY r.next_at LIMIT %(limit)s
"""


def requests_without_job(limit: int) -> list[int]:
    """Return the ids of requests with an overdue step and without a job that will do it."""
    rows = query(_WITHOUT_JOB, before=database_now() - LATE, limit=limit)
    return [id for (id,) in rows]


def enqueue_or_park(ids: Sequence[int]) -> int:
    """Enqueue the steps again, or park the requests whose job failed; return how many changed."""
    rows = RemovalRequest.objects.select_for_update(skip_locked=True, of=("self",))
    count = 0
    for row in rows.filter(pk__in=ids, next_at__isnull=False):
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


def requests_with_older_keys(limit: int) -> list[int]:
    """Return the ids of requests whose person is not encrypted with the newest key."""
    newest = newest_key_id()
    rows = RemovalRequest.objects.exclude(person="")
    older = [
        *rows.filter(key_id__lt=newest).order_by("key_id").values_list("pk", flat=True)[:limit]
    ]
    newer = rows.filter(key_id__gt=newest).order_by("key_id").values_list("pk", flat=True)
    return [*older, *newer[: limit - len(older)]]


def encrypt_again(ids: Sequence[int]) -> int:
    """Encrypt the data of these requests with the newest key; return how many changed."""
    changed = 0
    for row in RemovalRequest.objects.filter(pk__in=ids).exclude(person=""):
        try:
            person = encrypt(decrypt(row.person))
            confirm_url = encrypt(decrypt(row.confirm_url)) if row.confirm_url else ""
        except DecryptionError:  # the old key is missing, but may be configured again
            continue
        unchanged = RemovalRequest.objects.filter(
            pk=row.pk, person=row.person, confirm_url=row.confirm_url
        )
        changed += unchanged.update(person=person, confirm_url=confirm_url, key_id=newest_key_id())
    return changed
