"""Write and read pictures and their small copies under random names.

Uses the storage `photos` of Django's STORAGES: files under PHOTOS_FOLDER, unless the settings
configure another storage.
"""

import secrets
from typing import IO

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from tailrace.web import stored_files

PREFIX = "uploads/"
"""Prefix of the keys in this storage. Keys that callers choose must not have it."""
_COPY = ".small.jpg"


def new_key(suffix: str) -> str:
    """Return a random key."""
    name = secrets.token_hex(16)
    return f"{PREFIX}{name[:2]}/{name}{suffix}"


def is_stored_here(key: str) -> bool:
    """Return whether the picture is in this storage."""
    return key.startswith(PREFIX)


def save(key: str, picture: IO[bytes], copy: bytes) -> None:
    """Write both files. After an exception, `delete` removes files that were written."""
    stored_files.save(_storage(), key, picture)
    stored_files.save(_storage(), key + _COPY, ContentFile(copy))


def delete(key: str) -> bool:
    """Delete both files if they exist; return False if the storage failed."""
    return stored_files.delete(_storage(), key, key + _COPY)


def delete_original(key: str) -> bool:
    """Delete the picture but not its copy; return False if the storage failed."""
    return stored_files.delete(_storage(), key)


def read_copy(key: str) -> bytes | None:
    """Return the small copy, a JPEG, or None if the picture is not stored here."""
    if not is_stored_here(key):
        return None
    try:
        with _storage().open(key + _COPY) as file:
            copy: bytes = file.read()
            return copy
    except FileNotFoundError:
        return None


def _storage() -> Storage:
    return storages["photos"]
