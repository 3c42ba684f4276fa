"""Write and read pictures and their small copies under random names, in the storage `photos` of
Django's STORAGES: files under PHOTOS_FOLDER, unless the settings configure another storage."""

from typing import IO

from django.core.files.base import ContentFile

from tailrace.web.uploads.stored_files import StoredFiles

_FOLDER = "uploads"
PREFIX = f"{_FOLDER}/"
"""Prefix of the keys in this storage. Keys that callers choose must not have it."""
_COPY = ".small.jpg"
_files = StoredFiles("photos", _FOLDER)
new_key = _files.new_key
delete_original = _files.delete


def is_stored_here(key: str) -> bool:
    """Return whether the picture is in this storage."""
    return key.startswith(PREFIX)


def save(key: str, picture: IO[bytes], copy: bytes) -> None:
    """Write both files. After an exception, `delete` removes files that were written."""
    _files.save(key, picture)
    _files.save(key + _COPY, ContentFile(copy))


def delete(key: str) -> bool:
    """Delete both files if they exist; return False if the storage failed."""
    return _files.delete(key, key + _COPY)


def read_copy(key: str) -> bytes | None:
    """Return the small copy, a JPEG, or None if the picture is not stored here."""
    if not is_stored_here(key):
        return None
    try:
        with _files.open(key + _COPY) as file:
            copy: bytes = file.read()
            return copy
    except FileNotFoundError:
        return None
