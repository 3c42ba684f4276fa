from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Folder, Url


class TimelineSettings(AppSettings):
    """Imports of location histories, and timelines."""

    prefixes = ("TIMELINE_", "IMPORT_")

    IMPORT_GRACE_SECONDS: int = Field(300, ge=0, le=86_400)
    """seconds in which a parsed import can be cancelled before it is promoted"""
    IMPORT_MAX_MEGABYTES: int = Field(4500, ge=1, le=100_000)
    """maximum megabytes of an imported file"""
    IMPORT_MAX_POINTS: int = Field(20_000_000, ge=1)
    """maximum points that are read from an imported file; further points are ignored"""
    IMPORT_MAX_UNFINISHED: int = Field(10, ge=1, le=1000)
    """maximum number of unfinished imports of a user"""
    IMPORT_MAX_GIGABYTES_PER_USER: float = Field(10.0, gt=0)
    """maximum gigabytes of the stored import files of a user"""
    IMPORT_MAX_PER_USER: int = Field(1000, ge=1)
    """maximum number of imports in the history of a user"""
    IMPORT_FILES_RETENTION_DAYS: int = Field(1, ge=0, le=36_500)
    """days after which the file of a finished import is deleted; 0: when the import ends"""
    IMPORT_UNDO_DAYS: int = Field(30, ge=0, le=36_500)
    """days in which a promoted import can be undone; a change applies to later promotions"""
    IMPORT_HISTORY_DAYS: int = Field(365, ge=1, le=36_500)
    """days after which an ended import without points is removed from the history"""
    TIMELINE_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "timeline", examples=["var/timeline"]
    )
    """folder of the imported files, the same for all web processes and workers"""
    TIMELINE_MAX_POINTS_PER_USER: int = Field(50_000_000, ge=0)
    """maximum number of points in the timeline of a user; 0: any number"""
    TIMELINE_MAX_DEVICES_PER_USER: int = Field(50, ge=1, le=1000)
    """maximum number of devices of a user"""
    TIMELINE_TILES_URL: Annotated[str, Url(("http", "https"))] = ""
    """tiles of the map, https://host/{z}/{x}/{y}.png; empty: coasts, borders and towns"""
    TIMELINE_TILES_CREDIT: str = ""
    """attribution that the map shows for its tiles"""

    def storages(self) -> dict[str, Any]:
        return {"timeline": private_files(self.TIMELINE_FOLDER)}
