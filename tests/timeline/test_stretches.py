"""Where somebody was on a day, and what the clocks showed there."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.models import Device, Import, Place, Point
from tailrace.domains.timeline.points.stretches import Names, stretches_of
from tests.subscriptions.sample_domain import person
from tests.web.program import Program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BERLIN, TOKYO, SEA = (525000000, 134000000), (356500000, 1397000000), (0, -300000000)


@pytest.fixture
def ann() -> User:
    return person("ann")


def _import_of(user: User) -> Import:
    device = Device.objects.get_or_create(user=user, name="default")[0]
    row = Import.objects.create(
        user=user, device=device, state="completed", visible=True, file_name="", size=1
    )
    for (lat, lon), name, country, zone in (
        (BERLIN, "Berlin", "DE", "Europe/Berlin"),
        (TOKYO, "Tokyo", "JP", "Asia/Tokyo"),
    ):
        Place.objects.create(
            origin=row, cell_lat=lat // 100_000, cell_lon=lon // 100_000,
            name=name, country=country, time_zone=zone,
        )  # fmt: skip
    return row


def _at(hours: int, where: tuple[int, int]) -> tuple[datetime, int, int]:
    return (NOON + timedelta(hours=hours), *where)


def test_each_stretch_has_the_time_zone_of_its_place(ann: User) -> None:
    _import_of(ann)
    points = [_at(0, BERLIN), _at(1, BERLIN), _at(3, SEA), _at(8, TOKYO), _at(9, BERLIN)]
    stretches = stretches_of(points, Names(ann, points), ZoneInfo("America/Lima"))
    assert [(each.town, each.time_zone, each.points) for each in stretches] == [
        ("Berlin (DE)", "Europe/Berlin", 2), ("", "", 1), ("Tokyo (JP)", "Asia/Tokyo", 1),
        ("Berlin (DE)", "Europe/Berlin", 1),
    ]  # fmt: skip
    assert [f"{each.first_at:%d %H:%M}" for each in stretches] == [
        "01 13:00", "01 10:00", "02 05:00", "01 22:00",
    ]  # fmt: skip


def test_names_that_others_imported_are_not_used(ann: User) -> None:
    _import_of(person("bob"))
    points = [_at(0, BERLIN)]
    [stretch] = stretches_of(points, Names(ann, points), UTC)
    assert (stretch.town, stretch.time_zone) == ("", "")


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([SEA], "Times are in your time zone, UTC, because the local one is not known."),
        (
            [BERLIN],
            "Times are in the local time zone, Europe/Berlin. The day begins and ends at midnight"
            " in your time zone, UTC.",
        ),
        (
            [BERLIN, SEA],
            "Times are in the local time zones. Where it is not known, times are in your time zone,"
            " UTC.",
        ),
    ],
)
def test_the_page_says_of_which_time_zone_its_times_are(ann: User, places, text: str) -> None:
    row = _import_of(ann)
    for number, (lat, lon) in enumerate(places):
        Point.objects.create(
            device=row.device, origin=row, lat=lat, lon=lon,
            recorded_at=NOON + timedelta(hours=number),
        )  # fmt: skip
    assert text in Visitor(ann).text("/timeline/days/2026-03-01")


def test_a_time_of_another_date_there_has_its_date(ann: User) -> None:
    row = _import_of(ann)
    lat, lon = TOKYO
    for hour in (1, 11):
        at = NOON + timedelta(hours=hour)
        Point.objects.create(device=row.device, origin=row, lat=lat, lon=lon, recorded_at=at)
    text = Visitor(ann).text("/timeline/days/2026-03-01")
    assert "2 points, 22:00 to 2 Mar, 08:00. Near Tokyo (JP)." in text


def test_each_point_of_the_api_has_the_time_zone_of_its_place(ann: User) -> None:
    row = _import_of(ann)
    for number, (lat, lon) in enumerate([BERLIN, TOKYO, SEA]):
        at = NOON + timedelta(minutes=number)
        Point.objects.create(device=row.device, origin=row, lat=lat, lon=lon, recorded_at=at)
    items = Program(ann).all("/timeline/points", day="2026-03-01", limit=2)
    zones = [item["time_zone"] for item in items]
    assert zones == ["Europe/Berlin", "Asia/Tokyo", ""]
