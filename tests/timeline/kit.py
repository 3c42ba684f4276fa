"""What the tests of timelines share: files of points, uploads, and what is stored after them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.http import HttpResponse

from tailrace.domains.timeline.imports.cleanup import partitions
from tailrace.domains.timeline.imports.receive import receive
from tailrace.domains.timeline.models import Import, Point
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Job
from tests.web.program import Program

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
STEPS = (
    "timeline.stage",
    "timeline.promote",
    "timeline.enrich",
    "timeline.undo",
    "timeline.discard",
)


def track(count: int, first: int = 0, step: int = 10) -> list[tuple[datetime, float, float]]:
    """Return that many points: time, latitude, longitude."""
    numbers = range(first, first + count)
    return [
        (START + timedelta(seconds=step * n), round(52 + n / 1e4, 7), round(13 + n / 1e4, 7))
        for n in numbers
    ]


def gpx(points: Sequence[tuple[datetime | None, float, float]], end: str = "</gpx>\n") -> bytes:
    """Return a GPX file of these points, one on a line."""
    lines = [
        f'<trkpt lat="{lat}" lon="{lon}">'
        + ("" if at is None else f"<time>{at.isoformat().replace('+00:00', 'Z')}</time>")
        + "</trkpt>\n"
        for at, lat, lon in points
    ]
    head = '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n'
    return f"{head}{''.join(lines)}</trkseg></trk>{end}".encode()


def upload(user: User, file: bytes, device: str = "", name: str = "track.gpx") -> Import:
    """Let the user import the file."""
    return receive(user, SimpleUploadedFile(name, file), len(file), name, device)


def send(who: Program, file: bytes, device: str = "", name: str = "track.gpx") -> HttpResponse:
    """POST the file as a form."""
    data: dict[str, Any] = {"file": SimpleUploadedFile(name, file)}
    if device:
        data["device"] = device
    answer: HttpResponse = who.client.post("/api/imports", data)
    return answer


def now(row: Import) -> Import:
    """Return the import as it is stored now."""
    return Import.objects.get(pk=row.pk)


def numbers(row: Import) -> tuple[int, int, int]:
    """Return inserted, duplicates, rejected; they add up to what was read."""
    row = now(row)
    assert row.inserted + row.duplicates == row.staged
    assert row.staged + row.rejected == row.read
    return row.inserted, row.duplicates, row.rejected


def stored(user: User) -> list[tuple[datetime, int, int]]:
    """Return all points of the user, visible or not."""
    points = Point.objects.filter(device__user=user).order_by("recorded_at", "lon", "lat")
    return list(points.values_list("recorded_at", "lat", "lon"))


def visible(user: User) -> int:
    return Point.objects.visible_to(user).count()


def expected(points: Sequence[tuple[datetime, float, float]]) -> list[tuple[datetime, int, int]]:
    return sorted((at, round(lat * 1e7), round(lon * 1e7)) for at, lat, lon in points)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def rescued() -> None:
    """Let the lease of a lost worker end, and the wait before its job's next attempt."""
    Job.objects.filter(state="running").update(lease_until=Now() - timedelta(minutes=5))
    rescue.rescue()
    Job.objects.filter(state="pending").update(due_at=Now())


def staged_tables() -> list[int]:
    """Return the ids of the imports that have a partition."""
    return sorted(partitions())
