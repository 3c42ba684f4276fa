"""Write, open and delete deposited files, under random names.

Uses the storage `records` of Django's STORAGES, which by default keeps files in RECORDS_FOLDER.
"""

import secrets
from collections.abc import Iterable
from typing import IO, Any

from django.core.files.storage import Storage, storages

from tailrace.web import stored_files

FOLDER = "depositions"


def new_key() -> str:
    """Return a random key."""
    name = secrets.token_hex(16)
    return f"{FOLDER}/{name[:2]}/{name}"


def save(key: str, file: IO[bytes]) -> None:
    """Write the file. If this raises an error, `delete` removes a partly written file."""
    stored_files.save(storage(), key, file)


def delete(keys: Iterable[str]) -> bool:
    """Delete the files that exist; return whether this succeeded."""
    return stored_files.delete(storage(), *keys)


def open_file(key: str) -> Any:
    """Open the file for reading; raises FileNotFoundError."""
    return storage().open(key)


def storage() -> Storage:
    return storages["records"]
