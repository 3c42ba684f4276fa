"""Write, open and delete files under random names, which are stored in database rows."""

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

import structlog
from django.core.files.base import File
from django.core.files.storage import Storage, storages

log = structlog.get_logger(__name__)


class StoredFiles:
    """Files in one of Django's STORAGES; new keys and `all_files` are in one folder of it."""

    def __init__(self, storage: str, folder: str = "") -> None:
        self._name, self.folder = storage, folder

    @property
    def storage(self) -> Storage:
        return storages[self._name]

    def new_key(self, suffix: str = "") -> str:
        name = secrets.token_hex(16)
        return f"{self.folder}/{name[:2]}/{name}{suffix}"

    def save(self, key: str, file: IO[bytes]) -> None:
        """Write the whole file under this key. Raises FileExistsError if the key is taken.

        After an exception, call `delete` to remove a partly written file.
        """
        file.seek(0)
        saved_key = self.storage.save(key, file if isinstance(file, File) else File(file))
        if saved_key != key:  # the storage chose another key, so the row would not find the file
            self.storage.delete(saved_key)
            raise FileExistsError(f"{key} exists already")

    def delete(self, *keys: str) -> bool:
        """Delete the files; return False if the storage failed. Missing files and empty keys are
        ignored."""
        for key in filter(None, keys):
            try:
                self.storage.delete(key)
            except NotADirectoryError:
                continue  # a parent is not a folder, so the file does not exist
            except OSError as error:
                log.warning("files.not_deleted", key=key, error=error.strerror)
                return False
        return True

    def open(self, key: str) -> Any:
        """Open the file for reading. Raises FileNotFoundError."""
        return self.storage.open(key)

    def written_at(self, key: str) -> datetime | None:
        """Return when the file was written, or None if it no longer exists."""
        try:
            return self.storage.get_modified_time(key)
        except FileNotFoundError:
            return None

    def all_files(self) -> Iterator[tuple[str, datetime]]:
        """Yield the keys of all files in the folder, and when they were written."""
        try:
            folders = self.storage.listdir(self.folder)[0]
        except FileNotFoundError:
            return
        for folder in folders:
            for name in self.storage.listdir(f"{self.folder}/{folder}")[1]:
                key = f"{self.folder}/{folder}/{name}"
                if written_at := self.written_at(key):  # else deleted since it was listed
                    yield key, written_at
