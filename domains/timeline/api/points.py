"""Points in the API: in our own format, and in the formats of phone apps."""

from collections.abc import Callable
from typing import Annotated, Any, cast

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from tailrace.db import clock
from tailrace.domains.timeline.api.schemas import PointsIn, PointsOut
from tailrace.domains.timeline.imports.files.parsing.json_points import Collector, part, parts
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import e7, microseconds
from tailrace.domains.timeline.live import wire_formats
from tailrace.domains.timeline.live.receive import store
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.web.api.auth import ApiRequest, Needs, caller
from tailrace.web.api.problems import wrong_body
from tailrace.web.uploads.api import upload_problems

SEND = Needs("timeline:points")
router = Router()
Device = Annotated[str, Field(max_length=MAX_NAME, description="name of the device")]


@router.post("", auth=SEND, response=PointsOut, summary="Add points to your timeline")
def add_points(request: HttpRequest, body: PointsIn) -> PointsOut:
    """Adds at most 1,000 points, which are visible immediately. Repeated points are duplicates."""

    def read(points: Any, collector: Collector) -> None:
        for point in points:
            at = (microseconds(point.recorded_at), e7(point.lon), e7(point.lat))
            collector.add_at(at, (point.altitude, point.accuracy, point.speed, point.course))

    return _store(request, body.device, body.points, read)


@router.post("/owntracks", auth=SEND, response=list[str], summary="Add a point of OwnTracks")
def add_own_tracks(request: HttpRequest, device: Device = "") -> list[str]:
    """The HTTP mode of OwnTracks. Messages that are not locations are accepted and ignored."""
    body = _json(request)
    name = device or _text(request.headers.get("X-Limit-D")) or _text(part(body, "tid"))
    _store(request, name or "owntracks", body, wire_formats.own_tracks)
    return []


@router.post("/gpslogger", auth=SEND, response=PointsOut, summary="Add a point of GPSLogger")
def add_gps_logger(request: HttpRequest, device: Device = "") -> PointsOut:
    """GPSLogger's custom URL, with the JSON body `{"lat": %LAT, "lon": %LON, "time": "%TIME"}`,
    and optionally `alt`, `acc`, `spd` and `dir`."""
    return _store(request, device or "gpslogger", _json(request), wire_formats.gps_logger)


@router.post("/overland", auth=SEND, response=dict[str, str], summary="Add points of Overland")
def add_overland(request: HttpRequest, device: Device = "") -> dict[str, str]:
    """A batch of Overland. After this response, Overland deletes the points from the phone."""
    body = _json(request)
    name = device or _overland_device(body) or "overland"
    _store(request, name, body, wire_formats.overland)
    return {"result": "ok"}


def _json(request: HttpRequest) -> Any:
    if not request.body:
        raise wrong_body("send a JSON body")
    return cast(ApiRequest, request).parsed


def _text(value: Any) -> str:
    return value[:MAX_NAME] if isinstance(value, str) else ""


def _overland_device(body: Any) -> str:
    location = next(iter(parts(body, "locations")), None)
    return _text(part(location, "properties", "device_id"))


def _store(
    request: HttpRequest, device: str, body: Any, read: Callable[[Any, Collector], None]
) -> PointsOut:
    collector = Collector(Tally.at(clock.now()), lambda index: {})
    try:
        read(body, collector)
    except ValueError as error:
        raise wrong_body(str(error)) from None
    with upload_problems():
        inserted = store(caller(request).user, device, collector.points)
    return PointsOut(
        inserted=inserted,
        duplicates=len(collector.points) - inserted,
        rejected=dict(collector.tally.rejected),
    )
