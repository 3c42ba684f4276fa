"""Receive an uploaded file: store it, and let a job stage its points.

The row is written before the file, so that it names the files of uploads that were never finished.
"""

from typing import IO

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError

from tailrace.domains.timeline.imports import quotas, storage
from tailrace.domains.timeline.imports.errors import ImportRejected, StorageUnavailable
from tailrace.domains.timeline.imports.queues import STAGE, enqueue_discard, enqueue_step
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.events.validation import clean
from tailrace.web.user_lock import locked

MAX_FILE_NAME = 200
MAX_FORM_BYTES = 65_536
"""Bytes of a form beside its file."""
UPLOAD_COST = 5
"""Ordinary requests that an upload counts as."""


def receive(
    user: User, file: IO[bytes], size: int, file_name: str, device_name: str = ""
) -> Import:
    """Store the file and return its import, which a job will stage.

    Raises ImportRejected, or StorageUnavailable.
    """
    if not size:
        raise ImportRejected("file", "it is empty")
    with locked(user):
        quotas.check(user, size)
        location_import = Import.objects.create(
            user=user,
            device=quotas.device_of(user, device_name),
            file_name=clean(file_name)[0][:MAX_FILE_NAME],
            storage_key=storage.new_key(),
            size=size,
        )
    key = location_import.storage_key
    try:
        storage.save(key, file)
        return _queue(location_import)
    except (OperationalError, InterfaceError):
        raise  # unknown whether it was committed: the sweeper decides
    except BaseException as error:
        if storage.delete(key):
            Import.objects.filter(pk=location_import.pk, state=State.RECEIVING).delete()
        if isinstance(error, OSError):
            message = f"files cannot be stored now: {error.strerror or error}"
            raise StorageUnavailable(message) from error
        raise


def _queue(location_import: Import) -> Import:
    with locked(location_import.user):
        row = Import.objects.select_for_update().filter(pk=location_import.pk).first()
        if row is None:  # the account was deleted meanwhile
            enqueue_discard(location_import.pk, location_import.storage_key)
            raise ImportRejected("file", "your account was closed meanwhile")
        row.state = State.QUEUED
        row.job_id = enqueue_step(STAGE, row)
        row.save(update_fields=["state", "job_id"])
    return row
