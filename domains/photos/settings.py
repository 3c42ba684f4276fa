from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.settings import AppSettings, Problem
from tailrace.environment.types import Folder, Url


class PhotosSettings(AppSettings):
    """Gatherings, the sweeps of photos, and the pictures."""

    prefixes = ("PHOTOS_",)

    PHOTOS_DISTANCE_METERS: int = Field(75, ge=1, le=5000)
    """metres, along the great circle, within which photos form a gathering"""
    PHOTOS_TIME_WINDOW_MINUTES: int = Field(15, ge=1, le=1440)
    """minutes within which photos form a gathering"""
    PHOTOS_MIN_FOR_GATHERING: int = Field(5, ge=2, le=1000)
    """number of photos that form a gathering"""
    PHOTOS_SWEEP_SECONDS: int = Field(300, ge=1, le=86_400)
    """seconds between two sweeps of the photos"""
    PHOTOS_SWEEP_LOOKBACK_MINUTES: int = Field(60, ge=1, le=10_080)
    """minutes in which the sweep retries a photo without a gathering; after that the photo
    counts as unclusterable"""
    PHOTOS_SWEEP_BATCH: int = Field(200, ge=1, le=10_000)
    """maximum number of photos that one sweep checks"""
    PHOTOS_FINALIZE_AFTER_MINUTES: int = Field(60, ge=1, le=10_080)
    """minutes without a new photo after which a gathering has ended"""
    PHOTOS_PLACE_GRID_M: int = Field(100, ge=100, le=100_000)
    """metres: the minimum size of the cells to which the shown locations of gatherings are
    rounded"""
    PHOTOS_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "photos", examples=["var/photos"]
    )
    """folder of the pictures, the same for all web processes"""
    PHOTOS_ORIGINALS_RETENTION_DAYS: int = Field(0, ge=0, le=36_500)
    """days after which an uploaded picture is deleted, while its small copy stays; 0: never"""
    PHOTOS_MAX_MEGABYTES: int = Field(25, ge=1, le=1000)
    """maximum megabytes of a picture"""
    PHOTOS_MAX_MEGAPIXELS: int = Field(64, ge=1, le=1000)
    """maximum million pixels of a picture; each pixel takes up to 20 bytes of memory while the
    picture is decoded"""
    PHOTOS_MAX_PER_USER: int = Field(10_000, ge=0)
    """maximum number of photos of a user; 0: any number"""
    PHOTOS_MAX_GIGABYTES_PER_USER: float = Field(20.0, ge=0)
    """maximum gigabytes of the pictures of a user; 0: any size"""
    PHOTOS_DECODERS: int = Field(4, ge=2, le=100)
    """pictures that a web process decodes at the same time, at most half of them for one user;
    further uploads get a 503"""
    PHOTOS_DECODE_SECONDS: int = Field(10, ge=1, le=600)
    """maximum seconds of CPU time for decoding a picture"""
    PHOTOS_TILES_URL: Annotated[str, Url(("http", "https"))] = ""
    """tiles of the map, https://host/{z}/{x}/{y}.png; empty: coasts, borders and towns"""
    PHOTOS_TILES_CREDIT: str = ""
    """attribution that the map shows for its tiles"""

    def conflicts(self) -> Iterator[Problem]:
        """Yield the periods that are shorter than another period that they must contain."""
        window = self.PHOTOS_TIME_WINDOW_MINUTES
        for name in ("PHOTOS_SWEEP_LOOKBACK_MINUTES", "PHOTOS_FINALIZE_AFTER_MINUTES"):
            minutes = getattr(self, name)
            if minutes < window:
                message = f"{minutes} is shorter than PHOTOS_TIME_WINDOW_MINUTES, {window}"
                yield Problem(name, message)
        minutes = self.PHOTOS_SWEEP_LOOKBACK_MINUTES
        if minutes * 60 < self.PHOTOS_SWEEP_SECONDS:
            yield Problem(
                "PHOTOS_SWEEP_LOOKBACK_MINUTES",
                f"{minutes} is shorter than PHOTOS_SWEEP_SECONDS, {self.PHOTOS_SWEEP_SECONDS}:"
                " no photo would be tried again",
            )

    def storages(self) -> dict[str, Any]:
        """Return the storage of the pictures."""
        return {"photos": private_files(self.PHOTOS_FOLDER)}
