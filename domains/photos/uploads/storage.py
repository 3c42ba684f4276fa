"""Write and read pictures, each with a small copy beside it, under random names.

Uses the storage `photos` of Django's STORAGES: files under PHOTOS_FOLDER, unless the settings name
another one.
"""

import secrets
from typing import IO

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from tailrace.web import stored_files

PREFIX = "uploads/"
"""How the keys of pictures in this storage begin; keys that callers choose begin otherwise."""
_COPY = ".small.jpg"


def new_key(suffix: str) -> str:
    """Return a random key."""
    name = secrets.token_hex(16)
    return f"{PREFIX}{name[:2]}/{name}{suffix}"


def is_stored_here(key: str) -> bool:
    """Return whether the picture is in this storage, and not elsewhere."""
    return key.startswith(PREFIX)


def save(key: str, picture: IO[bytes], copy: bytes) -> None:
    """Write both files. If it raises, `delete` removes what was written."""
    stored_files.save(_storage(), key, picture)
    stored_files.save(_storage(), key + _COPY, ContentFile(copy))


def delete(key: str) -> bool:
    """Delete both files, as far as they exist; return whether that succeeded."""
    return stored_files.delete(_storage(), key, key + _COPY)


def delete_original(key: str) -> bool:
    """Delete the picture and leave its copy; return whether that succeeded."""
    return stored_files.delete(_storage(), key)


def read_copy(key: str) -> bytes | None:
    """Return the small copy, a JPEG; None if the picture is not stored here."""
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
