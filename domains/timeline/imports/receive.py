"""Receive an uploaded file: store it, and enqueue a job that stages its points.

The import's row is written before the file, so that the sweeper knows the files of unfinished
uploads.
"""

from typing import IO

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError

from tailrace.domains.timeline.imports import quotas
from tailrace.domains.timeline.imports.cleanup import delete_unused_devices
from tailrace.domains.timeline.imports.queues import STAGE, enqueue_discard, enqueue_step
from tailrace.domains.timeline.imports.storage import files
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.events.publishing.validation import clean
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected

MAX_FILE_NAME = 200


def receive(
    user: User,
    file: IO[bytes],
    size: int,
    file_name: str,
    device_name: str = "",
    *,
    one_device: bool = False,
) -> Import:
    """Store the file, enqueue its staging, and return its import. With `one_device`, all points are
    points of this device, even if the file tells several devices apart.

    Raises UploadRejected or StorageUnavailable.
    """
    if not size:
        raise UploadRejected(("file", "the file is empty"))
    with locked(user):
        quotas.check(user, size)
        device = quotas.device_of(user, device_name)
        location_import = Import.objects.create(
            user=user,
            device=device,
            file_name=clean(file_name)[0][:MAX_FILE_NAME],
            storage_key=files.new_key(),
            size=size,
            one_device=one_device,
        )
    key = location_import.storage_key
    try:
        files.save(key, file)
        return _queue(location_import)
    except (OperationalError, InterfaceError):
        raise  # it is unknown whether the row was committed: the sweeper cleans up
    except BaseException as error:
        if files.delete(key):
            Import.objects.filter(pk=location_import.pk, state=State.RECEIVING).delete()
            delete_unused_devices([device.pk])
        if isinstance(error, OSError):
            raise StorageUnavailable(error) from error
        raise


def _queue(location_import: Import) -> Import:
    with locked(location_import.user):
        row = Import.objects.select_for_update().filter(pk=location_import.pk).first()
        if row is None:  # the account was deleted during the upload
            enqueue_discard(location_import.pk, location_import.storage_key)
            raise UploadRejected(("file", "your account was closed during the upload"))
        row.state = State.QUEUED
        row.job_id = enqueue_step(STAGE, row)
        row.save(update_fields=["state", "job_id"])
    return row
