"""shelf: where pictures are kept, each with a small copy beside it, under a name of no meaning.

It is the storage `photos` of Django's STORAGES: files under PHOTOS_FOLDER, or whatever the settings
put there instead.
"""

import secrets
from typing import IO

import structlog
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

log = structlog.get_logger(__name__)

OURS = "uploads/"
"""How the keys of what is kept here begin; keys that callers name begin otherwise."""
_COPY = ".small.jpg"


def new_key(suffix: str) -> str:
    """Return a key that nobody can guess."""
    name = secrets.token_hex(16)
    return f"{OURS}{name[:2]}/{name}{suffix}"


def put(key: str, picture: IO[bytes], copy: bytes) -> None:
    """Write both files. What is written when it raises is for `remove`."""
    picture.seek(0)
    _save(key, File(picture))
    _save(key + _COPY, ContentFile(copy))


def remove(key: str) -> bool:
    """Remove both files, as far as they are there; return whether that went well."""
    try:
        for name in (key, key + _COPY):
            _storage().delete(name)
    except NotADirectoryError:
        return True  # then there is no file of ours either
    except OSError as error:
        log.warning("photos.files_left", key=key, error=str(error))
        return False
    return True


def copy_of(key: str) -> bytes | None:
    """Return the small copy, a JPEG; None if it is not kept here."""
    if not key.startswith(OURS):
        return None
    try:
        with _storage().open(key + _COPY) as file:
            found: bytes = file.read()
            return found
    except FileNotFoundError:
        return None


def _storage() -> Storage:
    return storages["photos"]


def _save(name: str, file: "File[bytes]") -> None:
    kept = _storage().save(name, file)
    if kept != name:  # a storage that takes another name: the row would lead to nothing
        _storage().delete(kept)
        raise FileExistsError(f"{name} is there already")
