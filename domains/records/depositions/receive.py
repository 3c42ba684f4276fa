"""Receive a deposition of a user: check the limits, store the files, and submit it once."""

import hashlib
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Sum

from tailrace.db.query import database_now
from tailrace.domains.records.depositions.deletion import DELETE_FILES
from tailrace.domains.records.depositions.storage import files as storage
from tailrace.domains.records.depositions.submit import Draft, submit
from tailrace.domains.records.models import Deposition, DepositionFile
from tailrace.events.publishing.validation import clean
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.platform.requests.errors import KeyReused
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads import limits
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected

SUBMITTED_BY = timedelta(hours=1)
"""The time after which a request that stored files has surely ended."""
MAX_FILE_NAME = 200
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,100}")


@dataclass(frozen=True, slots=True)
class Received:
    deposition: Deposition
    is_new: bool
    """False if the deposition was sent before with the same Idempotency-Key."""


def receive(
    user: User,
    metadata: dict[str, Any],
    files: Sequence[UploadedFile] = (),
    *,
    identifier: str = "",
    request_key: str = "",
) -> Received:
    """Submit a deposition of a new record, or of a new version of the record `identifier`.

    Raises UploadRejected, KeyReused or StorageUnavailable.
    """
    _check_files(files)
    rows = [_file_row(file) for file in files]
    draft = Draft(
        identifier=identifier or str(uuid.uuid4()),
        datestamp=database_now(),
        metadata=metadata,
        submitted_by_id=user.pk,
        request_key=request_key,
        file_digests=[f"{row.name}:{row.digest}" for row in rows],
    )
    if previous := _earlier_deposition(user, draft, identifier):
        return Received(previous, False)
    keys = [row.key for row in rows]
    try:
        _schedule_deletion(keys)
        for row, file in zip(rows, files, strict=True):
            storage.save(row.key, file)
        with locked(user):
            if previous := _earlier_deposition(user, draft, identifier):
                storage.delete(*keys)
                return Received(previous, False)
            _check_limits(user, sum(row.size for row in rows))
            check_version(user, identifier)
            return Received(_submit(draft, rows), True)
    except OSError as error:
        storage.delete(*keys)
        raise StorageUnavailable(error) from error
    except (UploadRejected, KeyReused):
        storage.delete(*keys)
        raise


def check_version(user: User, identifier: str) -> None:
    """Raise UploadRejected unless the identifier is empty or belongs to the user."""
    if (
        identifier
        and not Deposition.objects.filter(
            identifier=identifier, submitted_by=user, source=None
        ).exists()
    ):
        raise UploadRejected(("identifier", "you have no deposition with this identifier"))


def _schedule_deletion(keys: Sequence[str]) -> None:
    """Enqueue a job that later deletes the files that belong to no deposition.

    This process may be killed before the deposition is submitted. The job must be committed before
    the files are written.
    """
    if keys:
        enqueue(DELETE_FILES, {"keys": keys}, due_at=database_now() + SUBMITTED_BY)


def _submit(draft: Draft, rows: Sequence[DepositionFile]) -> Deposition:
    with transaction.atomic():
        [id] = submit([draft])
        for row in rows:
            row.deposition_id = id
        DepositionFile.objects.bulk_create(rows)
    return Deposition.objects.get(pk=id)


def _earlier_deposition(user: User, draft: Draft, identifier: str) -> Deposition | None:
    """Return the deposition that the user submitted with this Idempotency-Key, or None."""
    if not draft.request_key:
        return None
    rows = Deposition.objects.filter(submitted_by=user, request_key=draft.request_key)
    row = rows.first()
    if row is None:
        return None
    if row.digest != draft.digest or identifier not in ("", row.identifier):
        raise KeyReused(draft.request_key, f"deposition {row.pk}")
    return row


def _check_files(files: Sequence[UploadedFile]) -> None:
    if len(files) > settings.RECORDS_MAX_FILES:
        message = f"you sent {len(files)} files; at most {settings.RECORDS_MAX_FILES} are allowed"
        raise UploadRejected(("files", f"{message} (RECORDS_MAX_FILES)"))
    limits.check_size("files", sum(file.size or 0 for file in files), "RECORDS_MAX_MEGABYTES")
    names = [_name(file) for file in files]
    if repeated := {name for name in names if names.count(name) > 1}:
        message = f"two files are named {min(repeated)!r}; give each file its own name"
        raise UploadRejected(("files", message))


def _check_limits(user: User, size: int) -> None:
    """Raise QuotaExceeded if one more deposition with files of this size exceeds a limit."""
    count = Deposition.objects.filter(submitted_by=user).count()
    limits.check_count("metadata", count, "depositions", "RECORDS_MAX_PER_USER")
    files = DepositionFile.objects.filter(deposition__submitted_by=user)
    used = files.aggregate(sum=Sum("size"))["sum"] or 0
    limits.check_space("files", used, size, "RECORDS_MAX_GIGABYTES_PER_USER")


def _file_row(file: UploadedFile) -> DepositionFile:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    media_type = (file.content_type or "").lower()
    return DepositionFile(
        name=_name(file),
        media_type=media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream",
        size=file.size or 0,
        digest=digest.hexdigest(),
        key=storage.new_key(),
    )


def _name(file: UploadedFile) -> str:
    return str(clean(file.name or "file")[0])[:MAX_FILE_NAME]
