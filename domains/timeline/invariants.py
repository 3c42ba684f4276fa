"""The invariants of imports, staged points, files and announcements."""

from tailrace.domains.timeline.imports.upkeep import repairs
from tailrace.domains.timeline.live import announce
from tailrace.jobs.runtime.invariant import Invariant


class ImportsHaveTheirJob(Invariant):
    """Each unfinished import has a job for its current step.

    Repaired: imports whose step was enqueued again.
    """

    name = "timeline.imports_have_their_job"
    every = 60
    limit = 100
    found_by = repairs.without_job
    repaired_by = repairs.enqueue_again


class CancelledJobsEndImports(Invariant):
    """No import waits for a job that an operator cancelled, unless its promotion has begun.

    Repaired: imports that were cancelled, with the reason.
    """

    name = "timeline.cancelled_jobs_end_imports"
    every = 15
    limit = 100
    found_by = repairs.cancelled_by_operators
    repaired_by = repairs.end_cancelled


class UploadsEnd(Invariant):
    """The file of each import is stored within 6 hours after the upload began.

    Repaired: imports with an unfinished upload that were deleted, with their files.
    """

    name = "timeline.uploads_end"
    every = 600
    limit = 100
    found_by = repairs.unfinished_uploads
    repaired_by = repairs.delete_unfinished_uploads


class PartitionsBelongToImports(Invariant):
    """Each partition of staged points belongs to an import that is not promoted yet.

    Repaired: partitions that jobs will drop.
    """

    name = "timeline.partitions_belong_to_imports"
    every = 300
    limit = 1000
    found_by = repairs.abandoned_partitions
    repaired_by = repairs.drop_partitions


class FilesBelongToImports(Invariant):
    """Each stored file belongs to an import. Files of the last 6 hours are not checked.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_belong_to_imports"
    every = 3600
    limit = 500
    found_by = repairs.files_without_import
    repaired_by = repairs.delete_files


class FilesExpire(Invariant):
    """No file of an ended import is kept longer than IMPORT_FILES_RETENTION_DAYS.

    Repaired: files that jobs will delete.
    """

    name = "timeline.files_expire"
    every = 600
    limit = 500
    found_by = repairs.expired_files
    repaired_by = repairs.delete_expired_files


class HistoryEnds(Invariant):
    """No ended import without points is kept longer than IMPORT_HISTORY_DAYS.

    Repaired: imports that were removed from the history.
    """

    name = "timeline.history_ends"
    every = 3600
    limit = 500
    found_by = repairs.old_imports
    repaired_by = repairs.forget


class PointsAreAnnounced(Invariant):
    """New points of a device are announced by an event within two minutes.

    Repaired: devices for which a new job was enqueued.
    """

    name = "timeline.points_are_announced"
    every = 60
    limit = 1000
    found_by = announce.overdue
    repaired_by = announce.enqueue_announcements
