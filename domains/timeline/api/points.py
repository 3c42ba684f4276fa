"""Points in the API: in our own format, and in the formats of phone apps."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from tailrace.domains.timeline.api.schemas import PointsIn, PointsOut
from tailrace.domains.timeline.live import wire_formats
from tailrace.domains.timeline.live.receive import store
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.domains.timeline.points.points import Point
from tailrace.web.api.auth import ApiRequest, Needs, caller
from tailrace.web.api.problems import wrong_body
from tailrace.web.uploads.api import upload_problems

SEND = Needs("timeline:points")
router = Router()
Device = Annotated[str, Field(max_length=MAX_NAME, description="name of the device")]


@router.post("", auth=SEND, response=PointsOut, summary="Add points to your timeline")
def add_points(request: HttpRequest, body: PointsIn) -> PointsOut:
    """Adds at most 1,000 points, which are visible immediately. Repeated points are duplicates."""
    points = (
        wire_formats.point_of(
            point.recorded_at, point.lon, point.lat,
            point.altitude, point.accuracy, point.speed, point.course,
        )
        for point in body.points
    )  # fmt: skip
    return _store(request, body.device, points)


@router.post("/owntracks", auth=SEND, response=list[str], summary="Add a point of OwnTracks")
def add_own_tracks(request: HttpRequest, device: Device = "") -> list[str]:
    """The HTTP mode of OwnTracks. Messages that are not locations are accepted and ignored."""
    body = _json(request)
    name = device or _text(request.headers.get("X-Limit-D")) or _text(body, "tid")
    _store_wire(request, name or "owntracks", body, wire_formats.own_tracks)
    return []


@router.post("/gpslogger", auth=SEND, response=PointsOut, summary="Add a point of GPSLogger")
def add_gps_logger(request: HttpRequest, device: Device = "") -> PointsOut:
    """GPSLogger's custom URL, with the JSON body `{"lat": %LAT, "lon": %LON, "time": "%TIME"}`,
    and optionally `alt`, `acc`, `spd` and `dir`."""
    return _store_wire(request, device or "gpslogger", _json(request), wire_formats.gps_logger)


@router.post("/overland", auth=SEND, response=dict[str, str], summary="Add points of Overland")
def add_overland(request: HttpRequest, device: Device = "") -> dict[str, str]:
    """A batch of Overland. After this response, Overland deletes the points from the phone."""
    body = _json(request)
    name = device or _overland_device(body) or "overland"
    _store_wire(request, name, body, wire_formats.overland)
    return {"result": "ok"}


def _json(request: HttpRequest) -> Any:
    if not request.body:
        raise wrong_body("send a JSON body")
    return cast(ApiRequest, request).parsed


def _text(value: Any, key: str = "") -> str:
    if key:
        value = value.get(key) if isinstance(value, dict) else ""
    return value[:MAX_NAME] if isinstance(value, str) else ""


def _overland_device(body: Any) -> str:
    locations = body.get("locations") if isinstance(body, dict) else None
    first = locations[0] if isinstance(locations, list) and locations else None
    properties = first.get("properties") if isinstance(first, dict) else None
    return _text(properties, "device_id") if properties else ""


def _store_wire(
    request: HttpRequest, name: str, body: Any, read: Callable[[Any], wire_formats.Read]
) -> PointsOut:
    try:
        points, rejected = read(body)
    except ValueError as error:
        raise wrong_body(str(error)) from None
    return _store(request, name, points, rejected)


def _store(
    request: HttpRequest,
    device: str,
    points: Iterable[Point],
    rejected: Counter[str] | None = None,
) -> PointsOut:
    with upload_problems():
        stored = store(caller(request).user, device, points, rejected)
    return PointsOut(
        inserted=stored.inserted, duplicates=stored.duplicates, rejected=dict(stored.rejected)
    )
