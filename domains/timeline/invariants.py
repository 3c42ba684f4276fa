"""The invariants of imports, staged points, files and announcements."""

from collections.abc import Sequence
from typing import Any

from tailrace.domains.timeline.imports import repairs
from tailrace.domains.timeline.live import announce
from tailrace.jobs.maintenance.invariant import Invariant


class ImportsHaveTheirJob(Invariant):
    """Each unfinished import has a job for its current step.

    Repaired: imports whose step was enqueued again.
    """

    name = "timeline.imports_have_their_job"
    every = 60
    limit = 100

    def find(self) -> Sequence[Any]:
        return repairs.without_job(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.enqueue_again(violations)


class CancelledJobsEndImports(Invariant):
    """No import waits for a job that an operator cancelled, unless its promotion has begun.

    Repaired: imports that were cancelled, with the reason.
    """

    name = "timeline.cancelled_jobs_end_imports"
    every = 15
    limit = 100

    def find(self) -> Sequence[Any]:
        return repairs.cancelled_by_operators(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.end_cancelled(violations)


class UploadsEnd(Invariant):
    """The file of each import is stored within 6 hours after the upload began.

    Repaired: imports with an unfinished upload that were deleted, with their files.
    """

    name = "timeline.uploads_end"
    every = 600
    limit = 100

    def find(self) -> Sequence[Any]:
        return repairs.unfinished_uploads(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.delete_unfinished_uploads(violations)


class PartitionsBelongToImports(Invariant):
    """Each partition of staged points belongs to an import that is not promoted yet.

    Repaired: partitions that jobs will drop.
    """

    name = "timeline.partitions_belong_to_imports"
    every = 300
    limit = 1000

    def find(self) -> Sequence[Any]:
        return repairs.abandoned_partitions(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.drop_partitions(violations)


class FilesBelongToImports(Invariant):
    """Each stored file belongs to an import. Files of the last 6 hours are not checked.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_belong_to_imports"
    every = 3600
    limit = 500

    def find(self) -> Sequence[Any]:
        return repairs.files_without_import(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.delete_files(violations)


class FilesExpire(Invariant):
    """No file of an ended import is kept longer than IMPORT_FILES_RETENTION_DAYS.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_expire"
    every = 600
    limit = 500

    def find(self) -> Sequence[Any]:
        return repairs.expired_files(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.delete_expired_files(violations)


class HistoryEnds(Invariant):
    """No ended import without points is kept longer than IMPORT_HISTORY_DAYS.

    Repaired: imports that were removed from the history.
    """

    name = "timeline.history_ends"
    every = 3600
    limit = 500

    def find(self) -> Sequence[Any]:
        return repairs.old_imports(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return repairs.forget(violations)


class PointsAreAnnounced(Invariant):
    """New points of a device are announced by an event within two minutes.

    Repaired: devices for which a new job was enqueued.
    """

    name = "timeline.points_are_announced"
    every = 60
    limit = 1000

    def find(self) -> Sequence[Any]:
        return announce.overdue(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return announce.enqueue_announcements(violations)
