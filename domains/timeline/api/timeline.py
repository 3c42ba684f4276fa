"""A user's timeline in the API: days, points, exports."""

from datetime import date
from typing import Annotated, Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router
from pydantic import BaseModel, Field

from tailrace.db.pagination import decode, encode
from tailrace.domains.timeline.api.schemas import DayOut, DaysOut, DeviceName, PointOut
from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.points.days import Period, days_of, in_order, period
from tailrace.domains.timeline.points.exports import FORMATS
from tailrace.domains.timeline.points.stretches import time_zones_of
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Cursor, Page
from tailrace.web.api.problems import not_found, wrong_parameter

READ = Needs("timeline:read")
EXPORT = Needs("timeline:read", cost=20)
router = Router()


class DaysQuery(BaseModel):
    """A range of days in your time zone."""

    first: Annotated[date, Field(description="the first day, such as 2026-10-01")]
    last: Annotated[date, Field(description="the last day; at most 366 days at once")]


class ExportQuery(DaysQuery):
    device: Annotated[DeviceName, Field(description="name of the device; empty: `default`")] = ""
    format: Literal["gpx", "geojson"] = "gpx"


class PointsQuery(BaseModel):
    day: Annotated[date, Field(description="day in your time zone, such as 2026-10-01")]
    limit: Annotated[int, Field(ge=1, le=1000, description="maximum number of points")] = 200
    cursor: Cursor = None


@router.get("/days", auth=READ, response=DaysOut, summary="Days of your timeline")
def list_days(request: HttpRequest, query: Query[DaysQuery]) -> DaysOut:
    """The days that have points. Points of an import count once its promotion has finished."""
    user = caller(request).user
    zone = zone_of(user)
    within = _period(request, query.first, query.last)
    days = [DayOut.of(row, day=str(row.day)) for row in days_of(user, within, zone)]
    return DaysOut(time_zone=str(zone), days=days)


@router.get("/points", auth=READ, response=Page[PointOut], summary="Points of a day")
def list_points(request: HttpRequest, query: Query[PointsQuery]) -> Page[PointOut]:
    """In ascending order of time. Points of a file with the same time are in its order."""
    within = _period(request, query.day, query.day, "day")
    points = Point.objects.visible_to(caller(request).user).between(within.start, within.end)
    offset = 0 if query.cursor is None else decode(query.cursor, int)[0]
    if not 0 <= offset < 10**7:
        raise wrong_parameter("cursor", "not a cursor of this list")
    ordered = points.select_related("device").by_time()
    rows = list(ordered[offset : offset + query.limit + 1])
    more = len(rows) > query.limit
    shown = rows[: query.limit]
    located = [(row.recorded_at, row.lat, row.lon) for row in shown]
    zones = time_zones_of(caller(request).user, located)
    return Page(
        items=[
            PointOut.of(
                row, device=row.device.label, lat=row.lat / 1e7, lon=row.lon / 1e7, time_zone=zone
            )
            for row, zone in zip(shown, zones, strict=True)
        ],
        next=encode(offset + query.limit) if more else None,
    )


@router.get(
    "/export",
    auth=EXPORT,
    summary="Export points of a device",
    openapi_extra={
        "responses": {
            200: {
                "description": "a file",
                "content": {
                    "application/gpx+xml": {"schema": {"type": "string", "format": "binary"}},
                    "application/geo+json": {"schema": {"type": "object"}},
                },
            }
        }
    },
)
def export(request: HttpRequest, query: Query[ExportQuery]) -> StreamingHttpResponse:
    """A GPX or GeoJSON file. Importing it again for the same device adds no points."""
    within = _period(request, query.first, query.last)
    user = caller(request).user
    device = Device.objects.filter(user=user).called(query.device or "default")
    if device is None:
        raise not_found("device")
    points = Point.objects.visible_to(user).filter(device=device)
    content_type, write = FORMATS[query.format]
    file_name = f"timeline-{query.first}-{query.last}.{query.format}"
    return StreamingHttpResponse(
        write(device.name, in_order(points.between(within.start, within.end))),
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def _period(request: HttpRequest, first: date, last: date, parameter: str = "last") -> Period:
    try:
        return period(first, last, zone_of(caller(request).user))
    except ValueError as error:
        raise wrong_parameter(parameter, str(error)) from None
