from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder


class FilesSettings(AppSettings):
    """The folder of reports and recordings."""

    prefixes = ("PROTECTION_FOLDER",)

    PROTECTION_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "protection", examples=["var/protection"]
    )
    """folder of reports and recordings, the same for all web processes and workers"""

    def storages(self) -> dict[str, Any]:
        """Return the storage of reports and recordings, as an entry of STORAGES."""
        return {"protection": private_files(self.PROTECTION_FOLDER)}
