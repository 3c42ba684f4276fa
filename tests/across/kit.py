"""Points of a user's timeline, and pictures without a place."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.photos.models import Photo
from tailrace.domains.timeline.live.announce import announce
from tailrace.domains.timeline.models import Device, Point
from tests.photos.pictures import exif, picture
from tests.web.program import Program

PLACES = ("photos.request_places", "timeline.look_up_places", "photos.place_photos")
"""The queues that give photos their places."""

Where = tuple[datetime, float, float]
"""Time, latitude, longitude."""


def add_points(user: User, points: Iterable[Where], device: str = "phone", **more: Any) -> None:
    """Store points in the user's timeline, without an event."""
    row, _ = Device.objects.get_or_create(user=user, name=device)
    Point.objects.bulk_create(
        Point(
            device=row,
            recorded_at=at,
            lat=round(lat * 1e7),
            lon=round(lon * 1e7),
            **more,
        )
        for at, lat, lon in points
    )


def send_points(who: Program, points: Iterable[Where], device: str = "phone") -> None:
    """Send points as a phone does, and let the event follow at once."""
    body = [{"lat": lat, "lon": lon, "recorded_at": at.isoformat()} for at, lat, lon in points]
    answer = who.client.post(
        "/api/points", {"device": device, "points": body}, content_type="application/json"
    )
    assert answer.status_code < 300, answer.content
    announce(Device.objects.filter(user=who.user).values_list("pk", flat=True))


def upload_unplaced(who: Program, at: datetime, key: str = "") -> Photo:
    """Upload a picture whose EXIF has a time, but no place."""
    file = SimpleUploadedFile("a.jpg", picture(exif(taken_at=at)), "image/jpeg")
    data = {"file": file, "place_from_timeline": "true"}
    headers = {"Idempotency-Key": key} if key else {}
    answer = who.client.post("/api/photos", data, headers=headers)
    assert answer.status_code in (200, 201), answer.content
    return Photo.objects.get(pk=answer.json()["id"])


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)
