"""Write and read pictures, each with a small copy beside it, under random names.

Uses the storage `photos` of Django's STORAGES: files under PHOTOS_FOLDER, unless the settings name
another one.
"""

import secrets
from typing import IO

import structlog
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

log = structlog.get_logger(__name__)

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
    picture.seek(0)
    _save(key, File(picture))
    _save(key + _COPY, ContentFile(copy))


def delete(key: str) -> bool:
    """Delete both files, as far as they exist; return whether that succeeded."""
    try:
        for name in (key, key + _COPY):
            _storage().delete(name)
    except NotADirectoryError:
        return True  # the files do not exist either
    except OSError as error:
        log.warning("photos.files_not_deleted", key=key, error=str(error))
        return False
    return True


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


def _save(name: str, file: "File[bytes]") -> None:
    saved_name = _storage().save(name, file)
    if saved_name != name:  # the storage chose another name, so the row would not find the file
        _storage().delete(saved_name)
        raise FileExistsError(f"{name} exists already")
