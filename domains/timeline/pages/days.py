"""The pages of the timeline: the days of a month, and each day on a map."""

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from tailrace.db import clock
from tailrace.domains.timeline.imports.sample import segments, thinned
from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.points.days import Day, Period, days_of, newest_time, period
from tailrace.domains.timeline.points.stretches import Stretch, stretches_of
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.frame import PersonRequest, for_person, show, show_with_map

MOST_READ = 100_000
"""Maximum points of a day that are read for a map."""
MOST_STRETCHES = 100


@require_GET
@for_person
def days(request: PersonRequest) -> HttpResponse:
    """Show the days of a month: `month`, or by default the month of the last point."""
    zone = zone_of(request.user)
    text = request.GET.get("month", "")
    if text:
        first = _date(f"{text}-01")
    else:
        first = (newest_time(request.user) or clock.now()).astimezone(zone).date().replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    context = {
        "days": days_of(request.user, _period(request, first, following - timedelta(days=1)), zone),
        "month": first,
        "before": (first - timedelta(days=1)).replace(day=1),
        "following": following,
        "devices": list(Device.objects.present().filter(user=request.user).order_by("name")),
        "last": following - timedelta(days=1),
        "zone": str(zone),
    }
    return show(request, "tailrace/timeline/days.html", context)


@require_GET
@for_person
def day(request: PersonRequest, day: str) -> HttpResponse:
    """Show the points of a day on a map, and where the user was."""
    at = _date(day)
    zone = zone_of(request.user)
    within = _period(request, at, at)
    points = Point.objects.visible_to(request.user).between(within.start, within.end)
    rows = points.by_time().values_list("recorded_at", "lat", "lon")[:MOST_READ]
    stretches = stretches_of(request.user, list(rows), zone)
    days = days_of(request.user, within, zone)
    listed = stretches[:MOST_STRETCHES] if any(each.time_zone for each in stretches) else []
    context = {
        "day": at,
        "summary": _summary(at, days[0], stretches) if days and stretches else None,
        "towns": list(dict.fromkeys(each.town for each in stretches if each.town))[:MOST_STRETCHES],
        "lines": [(_clock(each.first_at, at), _clock(each.last_at, at), each) for each in listed],
        "left_out": len(stretches) - len(listed) if listed else 0,
        "about_times": _about_times(stretches, str(zone)),
        "before": at - timedelta(days=1),
        "following": at + timedelta(days=1),
        "devices": list(Device.objects.present().filter(user=request.user).order_by("name")),
    }
    tiles = {"tiles": settings.TIMELINE_TILES_URL, "credit": settings.TIMELINE_TILES_CREDIT}
    return show_with_map(request, "tailrace/timeline/day.html", context, **tiles)


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
    return HttpResponse(json.dumps(lines, separators=(",", ":")), content_type="application/json")


@require_GET
@for_person
def find_day(request: PersonRequest) -> HttpResponse:
    return redirect("timeline:day", _date(request.GET.get("day", "")).isoformat())


def _summary(day: date, totals: Day, stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Return the number of points, and the first and last time in the local time zones."""
    first = totals.first_at.astimezone(stretches[0].first_at.tzinfo)
    last = totals.last_at.astimezone(stretches[-1].last_at.tzinfo)
    return {"points": totals.points, "first": _clock(first, day), "last": _clock(last, day)}


def _about_times(stretches: Sequence[Stretch], own: str) -> str:
    """Return the sentences that state the time zones of the times on the page."""
    zones = {each.time_zone for each in stretches}
    if zones <= {""}:
        return f"Times are in your time zone, {own}: the local time zone is not known."
    if len(zones) == 1:
        [zone] = zones
        text = f"Times are in the local time zone, {zone}."
    else:
        text = "Times are in the local time zones."
        if "" in zones:
            text += f" Where the local time zone is not known, times are in yours, {own}."
    return text if zones == {own} else f"{text} The day is a day in your time zone, {own}."


def _clock(moment: datetime, day: date) -> str:
    """Return the local time, with the date if the local date is not `day`."""
    text = f"{moment:%H:%M}"
    return text if moment.date() == day else f"{moment.day} {moment:%b}, {text}"


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
