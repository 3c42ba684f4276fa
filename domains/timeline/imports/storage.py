"""Write, open and delete imported files, under random names.

Uses the storage `timeline` of Django's STORAGES: files under TIMELINE_FOLDER, unless the settings
configure another storage.
"""

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

from django.core.files.storage import Storage, storages

from tailrace.web import stored_files

FOLDER = "imports"


def new_key() -> str:
    """Return a random key."""
    name = secrets.token_hex(16)
    return f"{FOLDER}/{name[:2]}/{name}"


def save(key: str, file: IO[bytes]) -> None:
    """Write the file. After an exception, `delete` removes a partly written file."""
    stored_files.save(storage(), key, file)


def delete(key: str) -> bool:
    """Delete the file if it exists; return False if the storage failed. An empty key is ignored."""
    return not key or stored_files.delete(storage(), key)


def open_file(key: str) -> Any:
    """Open the file for reading. Raises FileNotFoundError."""
    return storage().open(key)


def written_at(key: str) -> datetime | None:
    """Return when the file was written, or None if it no longer exists."""
    try:
        return storage().get_modified_time(key)
    except FileNotFoundError:
        return None


def all_files() -> Iterator[tuple[str, datetime]]:
    """Yield the keys of all stored files, and when they were written."""
    try:
        folders = storage().listdir(FOLDER)[0]
    except FileNotFoundError:
        return
    for folder in folders:
        for name in storage().listdir(f"{FOLDER}/{folder}")[1]:
            key = f"{FOLDER}/{folder}/{name}"
            try:
                yield key, storage().get_modified_time(key)
            except FileNotFoundError:  # deleted since it was listed
                continue


def storage() -> Storage:
    return storages["timeline"]
