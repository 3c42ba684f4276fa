"""The pages of the timeline: the days of a month, and each day on a map."""

import json
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from tailrace.db import clock
from tailrace.domains.timeline.imports.sample import segments, thinned
from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.pages.calendar import weeks_of
from tailrace.domains.timeline.pages.journey import (
    STRIP,
    by_device,
    clock_time,
    distance,
    journeys_of,
)
from tailrace.domains.timeline.points.cells import cells_of
from tailrace.domains.timeline.points.days import (
    FIRST_DAY,
    LAST_DAY,
    Day,
    Period,
    days_of,
    newest_time,
    period,
)
from tailrace.domains.timeline.points.stretches import Names, Stretch, stretches_of
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.frame import PersonRequest, for_person, show_with_map
from tailrace.web.pages.map_layers import layer_addresses

MOST_READ = 100_000
"""Maximum points of a day that are read for a map."""
MOST_STRETCHES = 100


@require_GET
@for_person
def days(request: PersonRequest) -> HttpResponse:
    """Show a month on a map and as a calendar: `month`, or by default the month of the last
    point."""
    zone = zone_of(request.user)
    newest = newest_time(request.user)
    if text := request.GET.get("month", ""):
        first = _month(text)
    else:
        first = (newest or clock.now()).astimezone(zone).date().replace(day=1)
    last = _last_day(first)
    days = days_of(request.user, _period(request, first, last), zone)
    context = {
        "days": days,
        "weeks": weeks_of(first, last, days),
        "cells": f"{reverse('timeline:month_cells')}?month={first:%Y-%m}",
        "points": sum(each.points for each in days),
        "is_empty": newest is None,
        "month": first,
        "before": (first - timedelta(days=1)).replace(day=1),
        "following": last + timedelta(days=1),
        "devices": list(Device.objects.present().filter(user=request.user).order_by("name")),
        "last": last,
        "zone": str(zone),
    }
    return show_with_map(request, "tailrace/timeline/days.html", context, **_tiles())


@require_GET
@for_person
def month_cells(request: PersonRequest) -> HttpResponse:
    """Return the cells of a heat map of the month `month` as JSON: latitude, longitude, points."""
    first = _month(request.GET.get("month", ""))
    within = _period(request, first, _last_day(first))
    points = Point.objects.visible_to(request.user).between(within.start, within.end)
    return _json(cells_of(points))


@require_GET
@for_person
def day(request: PersonRequest, day: str) -> HttpResponse:
    """Show a day: its map, its stays and moves, and a table of the towns."""
    at = _date(day)
    zone = zone_of(request.user)
    within = _period(request, at, at)
    points = Point.objects.visible_to(request.user).between(within.start, within.end)
    fields = ("recorded_at", "lat", "lon", "device_id")
    rows = list(points.by_time().values_list(*fields)[:MOST_READ])
    located = [row[:3] for row in rows]
    devices = Device.objects.visible().filter(user=request.user)
    of_devices = by_device(rows, dict(devices.values_list("pk", "name")))
    names = Names(request.user, located)
    stretches = stretches_of(located, names, zone)
    days = days_of(request.user, within, zone)
    listed = stretches[:MOST_STRETCHES] if any(each.time_zone for each in stretches) else []
    lines = [(clock_time(each.first_at, at), clock_time(each.last_at, at), each) for each in listed]
    moved = journeys_of(of_devices, names, zone, at, within)
    context = {
        "day": at,
        "summary": _summary(at, days[0], stretches) if days and stretches else None,
        "towns": list(dict.fromkeys(each.town for each in stretches if each.town))[:MOST_STRETCHES],
        "journeys": moved.journeys,
        "places": moved.places,
        "distance": distance(max((each.metres for each in moved.journeys), default=0.0)),
        "devices_left_out": len({row[3] for row in rows}) - len(of_devices),
        "layers": layer_addresses(within.start, within.end),
        "strip": STRIP,
        "zone": str(zone),
        "lines": lines,
        "left_out": len(stretches) - len(listed) if listed else 0,
        "about_times": _about_times(stretches, str(zone)),
        "before": at - timedelta(days=1),
        "following": at + timedelta(days=1),
        "devices": list(Device.objects.present().filter(user=request.user).order_by("name")),
    }
    return show_with_map(request, "tailrace/timeline/day.html", context, **_tiles())


@require_GET
@for_person
def day_track(request: PersonRequest, day: str) -> HttpResponse:
    at = _date(day)
    within = _period(request, at, at)
    lines = []
    for device in Device.objects.visible().filter(user=request.user):
        points = Point.objects.visible_to(request.user).filter(device=device)
        rows = points.between(within.start, within.end).by_time()
        lines += segments(thinned(list(rows.values_list("recorded_at", "lon", "lat")[:MOST_READ])))
    return _json(lines)


@require_GET
@for_person
def find_day(request: PersonRequest) -> HttpResponse:
    return redirect("timeline:day", _date(request.GET.get("day", "")).isoformat())


def _summary(day: date, totals: Day, stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Return the number of points, and the first and last time in the local time zones."""
    first = totals.first_at.astimezone(stretches[0].first_at.tzinfo)
    last = totals.last_at.astimezone(stretches[-1].last_at.tzinfo)
    return {"points": totals.points, "first": clock_time(first, day), "last": clock_time(last, day)}


def _about_times(stretches: Sequence[Stretch], own: str) -> str:
    """Return the sentences that state the time zones of the times on the page."""
    zones = {each.time_zone for each in stretches}
    if zones <= {""}:
        return f"Times are in your time zone, {own}, because the local one is not known."
    if len(zones) == 1:
        [zone] = zones
        text = f"Times are in the local time zone, {zone}."
    else:
        text = "Times are in the local time zones."
        if "" in zones:
            text += f" Where it is not known, times are in your time zone, {own}."
    return (
        text
        if zones == {own}
        else f"{text} The day begins and ends at midnight in your time zone, {own}."
    )


def _tiles() -> dict[str, str]:
    return {"tiles": settings.TIMELINE_TILES_URL, "credit": settings.TIMELINE_TILES_CREDIT}


def _json(value: object) -> HttpResponse:
    return HttpResponse(json.dumps(value, separators=(",", ":")), content_type="application/json")


def _month(text: str) -> date:
    """Return the first day of the month."""
    first = _date(f"{text}-01")
    if not FIRST_DAY <= first <= LAST_DAY:
        raise Http404
    return first


def _last_day(first: date) -> date:
    """Return the last day of the month that begins with `first`."""
    return (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Http404 from None


def _period(request: PersonRequest, first: date, last: date) -> Period:
    try:
        return period(first, last, zone_of(request.user))
    except ValueError:
        raise Http404 from None
