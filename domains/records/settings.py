from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder, Urls


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


class SourcesSettings(AppSettings):
    """The harvest of sources."""

    prefixes = ("RECORDS_LOCAL_SOURCES", "RECORDS_REQUESTS_PER_SECOND")

    RECORDS_LOCAL_SOURCES: Annotated[list[str], Urls(("http", "https"))] = Field(default=[])
    """addresses (scheme, host, port) of sources that need not be public or encrypted, such as
    sources in your own network"""
    RECORDS_REQUESTS_PER_SECOND: float = Field(5.0, ge=0.1, le=1000)
    """maximum number of requests per second to one host of sources, by all workers together"""
