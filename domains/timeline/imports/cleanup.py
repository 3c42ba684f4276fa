"""End imports, drop staged points, and delete the files that imports no longer need."""

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports import staging
from tailrace.domains.timeline.imports.queues import UNDO, enqueue_discard, enqueue_step
from tailrace.domains.timeline.imports.storage import files
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import ENDED, STAGED, WITHOUT_POINTS, State

BY_OPERATOR = "An operator cancelled the import."
UNFINISHED_UPLOAD = timedelta(hours=6)
"""An upload that is not stored by then will never be stored: its request has ended."""


def end(row: Import, state: State, error: str = "") -> None:
    """End the import as cancelled or failed, and discard its staged points. Its row must be locked.

    If its promotion had begun before a crash of the database lost its staged points, some hidden
    points are already in the timeline. Then the import is undone instead.
    """
    row.error = error or row.error
    if row.promotion_began_at is not None:
        row.state, row.undo_cursor = State.UNDOING, None
        row.job_id = enqueue_step(UNDO, row)
    else:
        row.state, row.ended_at, row.job_id = state, database_now(), None
        enqueue_discard(row.pk, row.storage_key)
    row.save(update_fields=["state", "error", "undo_cursor", "ended_at", "job_id"])


def discard_after_commit(row: Import) -> None:
    """Enqueue a job that drops the staged points of a promoted import, and also deletes its file if
    IMPORT_FILES_RETENTION_DAYS is 0."""
    keep_file = settings.IMPORT_FILES_RETENTION_DAYS > 0
    enqueue_discard(row.pk, "" if keep_file else row.storage_key)


def discard(import_id: int, storage_key: str) -> bool:
    """Drop the import's partition unless the import is staged again, and delete the file unless
    `storage_key` is empty. An import that brought nothing leaves its device. Return False if the
    storage failed.
    """
    leave_device(import_id)
    if not Import.objects.filter(pk=import_id, state__in=STAGED).exists():
        staging.drop_partition(import_id)
    if not (_is_shared(import_id, storage_key) or files.delete(storage_key)):
        return False
    if storage_key:
        Import.objects.filter(pk=import_id, storage_key=storage_key).update(storage_key="")
    return True


def _is_shared(import_id: int, storage_key: str) -> bool:
    """Return whether another import of the same file has not ended."""
    others = Import.objects.filter(storage_key=storage_key).exclude(pk=import_id)
    return bool(storage_key) and others.exclude(state__in=ENDED).exists()


def leave_device(import_id: int) -> None:
    """Take the import off its device if it has ended and brought nothing. The device is deleted if
    it has nothing else."""
    with transaction.atomic():
        devices = Device.objects.select_for_update(of=("self",))
        device = devices.filter(imports=import_id, imports__state__in=WITHOUT_POINTS).first()
        if device is not None:
            ended = Import.objects.filter(pk=import_id, state__in=WITHOUT_POINTS)
            ended.update(device=None, device_name=device.label)
            delete_unused_devices([device.pk])


def delete_unused_devices(ids: Iterable[int]) -> None:
    """Delete each of these devices that has no points, imports and places. A device with former
    names stays, because its owner has renamed or merged it."""
    with transaction.atomic():
        unused = (
            Device.objects.select_for_update()
            .present()
            .filter(pk__in=ids, live_points=0, unannounced=0, former_names=[])
        )
        for device in unused.order_by("pk"):
            relations = (device.imports, device.points, device.places, device.merging)
            if not any(rows.exists() for rows in relations):
                device.delete()


_PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(%(parent)s)
"""


def partitions() -> dict[int, str]:
    """Return the names of all partitions of staged points by import id."""
    names = [name for (name,) in query(_PARTITIONS, parent=staging.PARENT)]
    prefix = f"{staging.PARENT}_"
    return {int(name.removeprefix(prefix)): name for name in names if name.startswith(prefix)}


def is_abandoned(state: str | None) -> bool:
    """Return whether a partition is no longer needed. `state` is the state of its import, or None
    if the import was deleted."""
    return state is None or State(state) not in (*STAGED, State.QUEUED)
