"""Requests and responses of the timeline API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tailrace.domains.timeline.live.wire_formats import MAX_POINTS
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.web.api.schemas import In, Out, Time

DeviceName = Annotated[str, Field(max_length=MAX_NAME, description="empty: `default`")]


class RejectedOut(Out):
    """One point of the file that was not accepted."""

    reason: str
    text: str
    member: str = ""
    line: int | None = None
    record: int | None = None
    offset: int | None = None


class ImportOut(Out):
    id: int
    url: str
    state: str
    file_name: str
    device: str
    one_device: bool
    """All points are of this device, even if the file tells several devices apart."""
    tag: str
    """The tag of the device in the file, if the import has only the points of one device."""
    part_of: int | None
    """The first import of the same file, if the file had the points of several devices."""
    size: int
    """Bytes of the file."""
    formats: str
    created_at: datetime
    bytes_read: int
    read: int
    """Points read so far, staged or rejected."""
    staged: int
    rejected: int
    rejected_by_reason: dict[str, int]
    first_rejected: list[RejectedOut]
    """The first 100 rejected points, each with its position in the file."""
    expected_duplicates: int | None
    promote_at: datetime | None
    """Time until which the import can be cancelled."""
    inserted: int
    """Points that are new in the timeline. After promotion, inserted + duplicates + rejected =
    read. A point that an undo of another import leaves to this one is no longer a duplicate."""
    duplicates: int
    promoted_at: datetime | None
    removed: int
    """Points that an undo of the import has removed."""
    error: str
    """The error in the file and its position, such as line and byte."""


class PointIn(In):
    lat: Annotated[float, Field(ge=-90, le=90, description="degrees, north is positive")]
    lon: Annotated[float, Field(ge=-180, le=180, description="degrees, east is positive")]
    recorded_at: Time
    altitude: Annotated[float | None, Field(ge=-20_000, le=1e6, description="metres")] = None
    accuracy: Annotated[float | None, Field(ge=0, le=1e7, description="metres")] = None
    speed: Annotated[float | None, Field(ge=0, le=1e5, description="metres per second")] = None
    course: Annotated[float | None, Field(ge=0, le=360, description="degrees from north")] = None


class PointsIn(In):
    device: DeviceName = ""
    points: Annotated[list[PointIn], Field(max_length=MAX_POINTS)]


class PointsOut(Out):
    """inserted + duplicates + all rejected = the number of points that were sent."""

    inserted: int
    duplicates: int
    rejected: dict[str, int]
    """Number of rejected points by reason."""


class PointOut(Out):
    device: str
    recorded_at: datetime
    lat: float
    lon: float
    altitude: float | None
    accuracy: float | None
    speed: float | None
    course: float | None
    time_zone: str
    """Local time zone, such as Europe/Berlin; empty if it is not known (yet)."""


class DayOut(Out):
    day: str
    """The date in your time zone, such as 2026-10-01."""
    points: int
    first_at: datetime
    last_at: datetime


class DaysOut(Out):
    time_zone: str
    days: list[DayOut]


class DeviceIn(In):
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class MergeIn(In):
    into: Annotated[int, Field(ge=1, le=2**63 - 1, description="id of the other device")]


class DeviceOut(Out):
    id: int
    name: str
    former_names: list[str]
    """Points that come with one of these names are points of this device."""
    state: Literal["present", "merging", "deleting"]
    into: int | None
    """The device that takes its points, while it is being merged."""
    point_count: int
    """Points of the device, also of imports that are not visible yet."""
    created_at: datetime
