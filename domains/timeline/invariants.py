"""The invariants of imports, staged points, files and announcements, and their repairs."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from django.conf import settings
from django.db.models import Q, QuerySet

from tailrace.db.query import database_now, query
from tailrace.domains.timeline.devices import removal
from tailrace.domains.timeline.imports import cleanup, source_check
from tailrace.domains.timeline.imports.queues import (
    ENRICH,
    PROMOTE,
    STAGE,
    UNDO,
    enqueue_discard,
    enqueue_step,
)
from tailrace.domains.timeline.imports.storage import files
from tailrace.domains.timeline.live import announce
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import ENDED, WITHOUT_POINTS, State
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.invariant import Invariant

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


class ImportsHaveTheirJob(Invariant):
    """Each unfinished import has a job for its current step.

    Repaired: imports whose step was enqueued again.
    """

    name = "timeline.imports_have_their_job"
    every = 60
    limit = 100

    def find(self) -> Sequence[int]:
        states, before = [str(state) for state in STEP_OF], database_now() - LATE
        return [id for (id,) in query(_WITHOUT_JOB, states=states, before=before, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        rows = Import.objects.select_for_update(skip_locked=True)
        count = 0
        for row in rows.filter(pk__in=violations, state__in=STEP_OF):
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


class CancelledJobsEndImports(Invariant):
    """No import waits for a job that an operator cancelled, unless its promotion has begun.

    Repaired: imports that were cancelled, with the reason.
    """

    name = "timeline.cancelled_jobs_end_imports"
    every = 15
    limit = 100

    def find(self) -> Sequence[int]:
        states = [str(state) for state in _NOT_PROMOTED]
        return [id for (id,) in query(_CANCELLED, states=states, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        rows = Import.objects.select_for_update(skip_locked=True).filter(
            pk__in=violations, state__in=_NOT_PROMOTED, promotion_began_at=None
        )
        count = 0
        for row in rows:
            if Job.objects.filter(pk=row.job_id or 0, state="cancelled").exists():
                cleanup.end(row, State.CANCELLED, cleanup.BY_OPERATOR)
                count += 1
        return count


class UploadsEnd(Invariant):
    """The file of each import is stored within 6 hours after the upload began.

    Repaired: imports with an unfinished upload that were deleted, with their files.
    """

    name = "timeline.uploads_end"
    every = 600
    limit = 100

    def find(self) -> Sequence[int]:
        before = database_now() - cleanup.UNFINISHED_UPLOAD
        rows = Import.objects.filter(state=State.RECEIVING, created_at__lt=before)
        return list(rows.order_by("created_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        return _forget(Import.objects.filter(pk__in=violations, state=State.RECEIVING))


class PartitionsBelongToImports(Invariant):
    """Each partition of staged points belongs to an import that is not promoted yet.

    Repaired: partitions that jobs will drop.
    """

    name = "timeline.partitions_belong_to_imports"
    every = 300

    def find(self) -> Sequence[int]:
        """Return the import ids of partitions that are no longer needed."""
        ids = sorted(cleanup.partitions())
        states = dict(Import.objects.filter(pk__in=ids).values_list("pk", "state"))
        return [id for id in ids if cleanup.is_abandoned(states.get(id))][: self.limit]

    def repair(self, violations: Sequence[int]) -> int:
        for id in violations:
            enqueue_discard(id, "")
        return len(violations)


class FilesBelongToImports(Invariant):
    """Each stored file belongs to an import. Files of the last 6 hours are not checked.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_belong_to_imports"
    every = 3600
    limit = 500

    def find(self) -> Sequence[str]:
        before = database_now() - cleanup.UNFINISHED_UPLOAD
        read = islice(files.all_files(), FILES_LOOKED_AT)
        old = [key for key, written_at in read if written_at < before]
        rows = Import.objects.filter(storage_key__in=old)
        known = set(rows.values_list("storage_key", flat=True))
        return [key for key in old if key not in known][: self.limit]

    def repair(self, violations: Sequence[str]) -> int:
        for key in violations:
            enqueue_discard(0, key)
        return len(violations)


class FilesExpire(Invariant):
    """No file of an ended import is kept longer than IMPORT_FILES_RETENTION_DAYS.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_expire"
    every = 600
    limit = 500

    def find(self) -> Sequence[int]:
        before = database_now() - timedelta(days=settings.IMPORT_FILES_RETENTION_DAYS)
        rows = Import.objects.filter(~Q(storage_key=""), ended_at__lt=before, state__in=ENDED)
        return list(rows.order_by("ended_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        rows = Import.objects.filter(pk__in=violations).exclude(storage_key="")
        for row in rows:
            enqueue_discard(row.pk, row.storage_key)
        return len(rows)


class HistoryEnds(Invariant):
    """No ended import without points is kept longer than IMPORT_HISTORY_DAYS.

    Repaired: imports that were removed from the history.
    """

    name = "timeline.history_ends"
    every = 3600
    limit = 500

    def find(self) -> Sequence[int]:
        before = database_now() - timedelta(days=settings.IMPORT_HISTORY_DAYS)
        rows = Import.objects.hidden().filter(ended_at__lt=before, state__in=WITHOUT_POINTS)
        return list(rows.order_by("ended_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        return _forget(Import.objects.hidden().filter(pk__in=violations))


def _forget(imports: QuerySet[Import]) -> int:
    rows = list(imports.select_for_update(skip_locked=True))
    for row in rows:
        enqueue_discard(row.pk, row.storage_key)
    deleted = Import.objects.filter(pk__in=[row.pk for row in rows]).delete()[0]
    cleanup.delete_unused_devices({row.device_id for row in rows if row.device_id})
    return deleted


class EndedImportsLeaveDevices(Invariant):
    """An import that brought nothing has no device.

    Repaired: imports that jobs will take off their devices.
    """

    name = "timeline.ended_imports_leave_devices"
    every = 600
    limit = 500

    def find(self) -> Sequence[int]:
        before = database_now() - LATE
        rows = Import.objects.hidden().filter(
            device__isnull=False, ended_at__lt=before, state__in=WITHOUT_POINTS
        )
        return list(rows.order_by("ended_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        for id in violations:
            enqueue_discard(id, "")
        return len(violations)


class RemovedDevicesEnd(Invariant):
    """The job that merges or deletes a device has not been lost.

    Repaired: devices whose job was enqueued again.
    """

    name = "timeline.removed_devices_end"
    every = 60
    limit = 100
    found_by = removal.overdue
    repaired_by = removal.enqueue_removals


class PointsHaveSources(Invariant):
    """Each point has an import or the device as its first source, and each further source has a
    point with another first source. No source is an import that has ended without points.

    Violations are devices and imports; the import 0 is the device itself.
    """

    name = "timeline.points_have_sources"
    every = None
    in_batches = True
    advice = (
        "a point without a source is deleted, and a source without its point gets a point without"
        " altitude, accuracy, speed and course"
    )
    found_by = source_check.wrong_sources
    repaired_by = source_check.repair


class PointsAreAnnounced(Invariant):
    """New points of a device are announced by an event within two minutes.

    Repaired: devices for which a new job was enqueued.
    """

    name = "timeline.points_are_announced"
    every = 60
    found_by = announce.overdue
    repaired_by = announce.enqueue_announcements
