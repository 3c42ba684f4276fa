from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder


class RecordsSettings(AppSettings):
    """Records that are deposited or harvested, and the search in records."""

    prefixes = ("RECORDS_",)

    RECORDS_AUTO_APPROVE: bool = True
    """publish valid depositions of users at once; otherwise each waits for a curator. Depositions
    of sources never wait"""
    RECORDS_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "records", examples=["var/records"]
    )
    """folder of the deposited files, the same for all web processes and workers"""
    RECORDS_MAX_MEGABYTES: int = Field(100, ge=1, le=10_000)
    """maximum size of all files of a deposition, in megabytes"""
    RECORDS_MAX_FILES: int = Field(20, ge=1, le=1000)
    """maximum number of files of a deposition"""
    RECORDS_MAX_GIGABYTES_PER_USER: float = Field(5.0, gt=0)
    """maximum size of all files of a user, in gigabytes"""
    RECORDS_MAX_PER_USER: int = Field(10_000, ge=1)
    """maximum number of depositions of a user"""

    def storages(self) -> dict[str, Any]:
        return {"records": private_files(self.RECORDS_FOLDER)}
