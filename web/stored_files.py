"""Write and delete files whose names are stored in database rows."""

from typing import IO

import structlog
from django.core.files.base import File
from django.core.files.storage import Storage

log = structlog.get_logger(__name__)


def save(storage: Storage, name: str, file: IO[bytes]) -> None:
    """Write the whole file under this name. Raises FileExistsError if the name is taken.

    After an error, call `delete` to remove a partly written file.
    """
    file.seek(0)
    saved_name = storage.save(name, file if isinstance(file, File) else File(file))
    if saved_name != name:  # the storage chose another name, so the row would not find the file
        storage.delete(saved_name)
        raise FileExistsError(f"{name} exists already")


def delete(storage: Storage, *names: str) -> bool:
    """Delete the files; missing files are no error. Return whether all files are gone."""
    try:
        for name in names:
            storage.delete(name)
    except NotADirectoryError:
        return True  # a parent is not a folder, so the files do not exist
    except OSError as error:
        log.warning("files.not_deleted", key=names[0], error=error.strerror)
        return False
    return True
