"""Write, read and delete files, each with its row in `StoredFile`.

    write: the row ──► the file ──► (the caller's transaction) its owner
    release: the owner's transaction enqueues a job ──► the file ──► the row

Uses the storage `protection` of Django's STORAGES: files under PROTECTION_FOLDER, unless the
settings name another one.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import FileResponse

from tailrace.db.query import database_now
from tailrace.domains.protection.models import StoredFile
from tailrace.jobs.enqueue import enqueue_many
from tailrace.web.uploads.download import download_response
from tailrace.web.uploads.stored_files import StoredFiles

HANDLER = "protection.delete_file"
UNOWNED_AFTER = timedelta(hours=1)
"""Age from which a file without an owner is deleted: its writer has failed."""
_files = StoredFiles("protection")


def write(folder: str, content: bytes, suffix: str) -> StoredFile:
    """Store the content under a random name and return its row. Raises OSError.

    The caller has to refer to the row within UNOWNED_AFTER; otherwise the file is deleted.
    """
    files = StoredFiles("protection", folder)
    file = StoredFile.objects.create(key=files.new_key(suffix), size=len(content))
    files.save(file.key, ContentFile(content))
    return file


def download(
    row: Any, missing: Exception, content_type: str = "application/octet-stream"
) -> FileResponse:
    """Return a download of the row's `file`; raise `missing` if there is no such file."""
    try:
        return download_response(_files.open(row.file.key), row.file_name, content_type)
    except FileNotFoundError:
        raise missing from None


def read(file: StoredFile) -> bytes:
    """Return the content, empty if the file is missing. Raises OSError."""
    try:
        with _files.open(file.key) as opened:
            content: bytes = opened.read()
            return content
    except FileNotFoundError:
        return b""


def release(files: Iterable[int | None]) -> None:
    """Enqueue jobs that delete the files with these ids. Nothing may refer to the files after this
    transaction."""
    keys = [str(id) for id in files if id is not None]
    enqueue_many(HANDLER, [{"routing_key": key, "unique_key": key} for key in keys])


def delete_owners(rows: QuerySet[Any]) -> int:
    """Delete these rows, which each have a `file`, and release their files; return how many."""
    with transaction.atomic():
        files = dict(rows.select_for_update().values_list("pk", "file"))
        release(files.values())
        rows.model._default_manager.filter(pk__in=files).delete()
    return len(files)


def delete(id: int) -> bool:
    """Delete a file and its row, unless something refers to it; return False if the storage fails.

    The lock of the row prevents new references until the row is deleted.
    """
    with transaction.atomic():
        file = StoredFile.objects.select_for_update().filter(pk=id).first()
        if file is None or not _without_owner(StoredFile.objects.filter(pk=id)).exists():
            return True
        if not _files.delete(file.key):
            return False
        file.delete()
    return True


def find_unowned(limit: int) -> Sequence[int]:
    """Return the ids of files without an owner that are older than UNOWNED_AFTER, oldest first."""
    old = StoredFile.objects.filter(created_at__lt=database_now() - UNOWNED_AFTER)
    return list(_without_owner(old).order_by("created_at").values_list("pk", flat=True)[:limit])


def release_unowned(ids: Sequence[int]) -> int:
    """Release these files; return how many. Files whose job is still waiting count, too."""
    release(ids)
    return len(ids)


def _without_owner(files: QuerySet[StoredFile]) -> QuerySet[StoredFile]:
    owners: list[Any] = list(StoredFile._meta.related_objects)
    for owner in owners:
        rows = owner.related_model._default_manager.filter(**{owner.field.name: OuterRef("pk")})
        files = files.filter(~Exists(rows))
    return files
