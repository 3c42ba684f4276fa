"""Find and repair imports without a job, and staged points and files without an import."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports.queues import (
    ENRICH,
    PROMOTE,
    STAGE,
    UNDO,
    enqueue_discard,
    enqueue_step,
)
from tailrace.domains.timeline.imports.storage import files
from tailrace.domains.timeline.imports.upkeep import cleanup
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import ENDED, State
from tailrace.jobs.models import Job

STEP_OF = {
    State.QUEUED: STAGE,
    State.PARSING: STAGE,
    State.GRACE: PROMOTE,
    State.PROMOTING: PROMOTE,
    State.ENRICHING: ENRICH,
    State.UNDOING: UNDO,
}
"""The handler whose job does the step of an import in this state."""
LATE = timedelta(minutes=10)
"""How long after the end of its last job an import gets another job."""
FILES_LOOKED_AT = 10_000

_WITHOUT_JOB = """
SELECT i.id FROM tailrace_timeline_import i LEFT JOIN tailrace_jobs_job j ON j.id = i.job_id
WHERE i.state = ANY(%(states)s) AND i.created_at < %(before)s
  AND (j.id IS NULL
       OR (j.state NOT IN ('waiting', 'pending', 'running') AND j.finished_at < %(before)s))
ORDER BY i.created_at LIMIT %(limit)s
"""


def without_job(limit: int) -> list[int]:
    before = database_now() - LATE
    rows = query(_WITHOUT_JOB, states=[str(state) for state in STEP_OF], before=before, limit=limit)
    return [id for (id,) in rows]


def enqueue_again(ids: Sequence[int]) -> int:
    count = 0
    for row in Import.objects.select_for_update(skip_locked=True).filter(
        pk__in=ids, state__in=STEP_OF
    ):
        due_at = row.promote_at if row.state == State.GRACE else None
        row.job_id = enqueue_step(STEP_OF[State(row.state)], row, due_at=due_at)
        row.save(update_fields=["job_id"])
        count += 1
    return count


_CANCELLED = """
SELECT i.id FROM tailrace_timeline_import i JOIN tailrace_jobs_job j ON j.id = i.job_id
WHERE i.state = ANY(%(states)s) AND i.promotion_began_at IS NULL AND j.state = 'cancelled'
ORDER BY i.created_at LIMIT %(limit)s
"""
_NOT_PROMOTED = (State.QUEUED, State.PARSING, State.GRACE)


def cancelled_by_operators(limit: int) -> list[int]:
    """Return the ids of imports whose job an operator cancelled before the promotion began."""
    return [id for (id,) in query(_CANCELLED, states=list(map(str, _NOT_PROMOTED)), limit=limit)]


def end_cancelled(ids: Sequence[int]) -> int:
    rows = Import.objects.select_for_update(skip_locked=True).filter(
        pk__in=ids, state__in=_NOT_PROMOTED, promotion_began_at=None
    )
    count = 0
    for row in rows:
        if Job.objects.filter(pk=row.job_id or 0, state="cancelled").exists():
            cleanup.end(row, State.CANCELLED, cleanup.BY_OPERATOR)
            count += 1
    return count


def unfinished_uploads(limit: int) -> list[int]:
    before = database_now() - cleanup.UNFINISHED_UPLOAD
    rows = Import.objects.filter(state=State.RECEIVING, created_at__lt=before)
    return list(rows.order_by("created_at").values_list("pk", flat=True)[:limit])


def delete_unfinished_uploads(ids: Sequence[int]) -> int:
    return _forget(Import.objects.filter(pk__in=ids, state=State.RECEIVING))


def abandoned_partitions(limit: int) -> list[int]:
    """Return the import ids of partitions that are no longer needed; the imports may be deleted."""
    ids = sorted(cleanup.partitions())
    states = dict(Import.objects.filter(pk__in=ids).values_list("pk", "state"))
    return [id for id in ids if cleanup.is_abandoned(states.get(id))][:limit]


def drop_partitions(ids: Sequence[int]) -> int:
    for id in ids:
        enqueue_discard(id, "")
    return len(ids)


def files_without_import(limit: int) -> list[str]:
    before = database_now() - cleanup.UNFINISHED_UPLOAD
    old = []
    for number, (key, written_at) in enumerate(files.all_files()):
        if number >= FILES_LOOKED_AT:
            break
        if written_at < before:
            old.append(key)
    known = set(Import.objects.filter(storage_key__in=old).values_list("storage_key", flat=True))
    return [key for key in old if key not in known][:limit]


def delete_files(keys: Sequence[str]) -> int:
    for key in keys:
        enqueue_discard(0, key)
    return len(keys)


def expired_files(limit: int) -> list[int]:
    before = database_now() - timedelta(days=settings.IMPORT_FILES_RETENTION_DAYS)
    rows = Import.objects.filter(~Q(storage_key=""), ended_at__lt=before, state__in=ENDED)
    return list(rows.order_by("ended_at").values_list("pk", flat=True)[:limit])


def delete_expired_files(ids: Sequence[int]) -> int:
    rows = Import.objects.filter(pk__in=ids).exclude(storage_key="")
    for row in rows:
        enqueue_discard(row.pk, row.storage_key)
    return len(rows)


def old_imports(limit: int) -> list[int]:
    """Return the ids of imports that ended without points more than IMPORT_HISTORY_DAYS ago."""
    before = database_now() - timedelta(days=settings.IMPORT_HISTORY_DAYS)
    gone = (State.CANCELLED, State.FAILED, State.UNDONE)
    rows = Import.objects.hidden().filter(ended_at__lt=before, state__in=gone)
    return list(rows.order_by("ended_at").values_list("pk", flat=True)[:limit])


def forget(ids: Sequence[int]) -> int:
    return _forget(Import.objects.hidden().filter(pk__in=ids))


def _forget(imports: QuerySet[Import]) -> int:
    rows = list(imports.select_for_update(skip_locked=True))
    for row in rows:
        enqueue_discard(row.pk, row.storage_key)
    return Import.objects.filter(pk__in=[row.pk for row in rows]).delete()[0]
