from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder


class RecordsSettings(AppSettings):
    """Records that are deposited or harvested, and the search over them."""

    prefixes = ("RECORDS_",)

    RECORDS_AUTO_APPROVE: bool = True
    """publish valid depositions of users at once; otherwise each waits for a curator. Those of
    sources never wait"""
    RECORDS_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "records", examples=["var/records"]
    )
    """folder of the deposited files, the same for all web processes and workers"""
    RECORDS_MAX_MEGABYTES: int = Field(100, ge=1, le=10_000)
    """megabytes that the files of a deposition may have together"""
    RECORDS_MAX_FILES: int = Field(20, ge=1, le=1000)
    """files that a deposition may have"""
    RECORDS_MAX_GIGABYTES_PER_USER: float = Field(5.0, gt=0)
    """gigabytes that the files of a user may take"""
    RECORDS_MAX_PER_USER: int = Field(10_000, ge=1)
    """depositions that a user may have"""

    def storages(self) -> dict[str, Any]:
        """Return the storage of the deposited files."""
        return {"records": private_files(self.RECORDS_FOLDER)}
