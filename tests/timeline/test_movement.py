"""Stays and moves of a day, its page, and the calendar of a month."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.pages import journey
from tailrace.domains.timeline.pages.calendar import weeks_of
from tailrace.domains.timeline.points import cells
from tailrace.domains.timeline.points.days import Day
from tailrace.domains.timeline.points.movement import metres_between, movements_of
from tailrace.domains.timeline.points.stretches import Located
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor

DAY = datetime(2026, 3, 1, 8, tzinfo=UTC)
HOME = (525_000_000, 134_000_000)
KILOMETRE = 89_831
"""In 1e-7 degrees of latitude."""


def points(*parts: tuple[float, float]) -> list[Located]:
    """Return a point for each pair of minutes after DAY and kilometres north of HOME."""
    return [
        (DAY + timedelta(minutes=minutes), HOME[0] + int(north * KILOMETRE), HOME[1])
        for minutes, north in parts
    ]


def described(located: list[Located]) -> list[tuple[str, int, int]]:
    """Return kind, minutes and metres of each movement."""
    return [
        ("stay" if each.is_stay else "move", round(each.seconds / 60), round(each.metres))
        for each in movements_of(located)
    ]


def test_a_walk_between_two_stays() -> None:
    track = [(minute, 0.0) for minute in range(0, 31, 5)]
    track += [(30 + minute, minute / 10) for minute in range(1, 21)]
    track += [(50 + minute, 2.0) for minute in range(5, 41, 5)]
    movements = described(points(*track))
    assert [kind for kind, _, _ in movements] == ["stay", "move", "stay"]
    assert movements[1][2] == pytest.approx(2000, abs=150)
    assert sum(minutes for _, minutes, _ in movements) == pytest.approx(90, abs=1)


def test_a_jump_of_the_position_does_not_split_a_stay() -> None:
    track = [(0, 0), (15, 0.01), (20, 0.25), (21, 0), (40, 0.02)]
    assert described(points(*track)) == [("stay", 40, 0)]


def test_a_short_stop_is_part_of_the_move() -> None:
    track = [(minute, minute / 5) for minute in range(10)]
    track += [(10, 2.0), (14, 2.0), *((15 + minute, 2 + minute / 5) for minute in range(10))]
    assert [kind for kind, _, _ in described(points(*track))] == ["move"]


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_points_have_no_movement(count: int) -> None:
    assert movements_of(points((0, 0))[:count]) == []


def test_a_move_over_the_antimeridian_is_short() -> None:
    west, east = (DAY, 0, -1_799_990_000), (DAY, 0, 1_799_990_000)
    assert metres_between(west, east) == pytest.approx(223, abs=2)


def test_a_calendar_has_whole_weeks_and_shades() -> None:
    first, last = date(2026, 3, 1), date(2026, 3, 31)
    days = [Day(first, 400, DAY, DAY), Day(date(2026, 3, 2), 1, DAY, DAY)]
    weeks = weeks_of(first, last, days)
    assert {len(week) for week in weeks} == {7}
    shown = [each for week in weeks for each in week if each]
    assert [each.day.day for each in shown] == list(range(1, 32))
    assert [each.level for each in shown[:3]] == [4, 1, 0]
    assert weeks[0][:6] == [None] * 6, "it was a Sunday"


@pytest.fixture
def ann(db: None) -> User:
    user = person("ann")
    device = Device.objects.create(user=user, name="phone")
    track = [(minute, 0.0) for minute in range(0, 31, 5)]
    track += [(30 + minute, minute / 10) for minute in range(1, 21)]
    track += [(50 + minute, 2.0) for minute in range(5, 41, 5)]
    track += [(110, 0.0), (130, 0.0)]
    rows = [Point(device=device, recorded_at=at, lat=lat, lon=lon)
            for at, lat, lon in points(*track)]  # fmt: skip
    Point.objects.bulk_create(rows)
    return user


def test_a_day_shows_stays_and_moves_beside_its_map(ann: User) -> None:
    page = Visitor(ann).text("/timeline/days/2026-03-01")
    assert "3.9 km covered, 2 places ." in page
    assert "1 At 52.5000, 13.4000 08:00 – 08:31 · 31 min" in page
    assert "Moved 1.9 km 08:31 – 08:50 · 19 min, 6 km/h" in page
    html = Visitor(ann).get("/timeline/days/2026-03-01").content.decode()
    assert html.index('id="map"') < html.index("ti-strip") < html.index("km</strong> covered")
    assert html.count('data-place="1"') == 2, "the same place has the same number"
    assert "style=" not in html


def test_rows_that_do_not_fit_are_counted(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journey, "MOST_ROWS", 2)
    assert "3 more stays and moves are not shown." in Visitor(ann).text("/timeline/days/2026-03-01")
    monkeypatch.setattr(journey, "MOST_DEVICES", 0)
    page = Visitor(ann).text("/timeline/days/2026-03-01")
    assert "Moved" not in page


def test_a_month_shows_its_map_and_calendar_before_its_table(ann: User) -> None:
    html = Visitor(ann).get("/timeline/?month=2026-03").content.decode()
    assert html.index('data-heat="/timeline/cells?month=2026-03"') < html.index('id="calendar"')
    assert html.index('id="calendar"') < html.index("Table of the days")
    assert "1 March, 37 points" in Visitor(ann).text("/timeline/?month=2026-03")


def test_a_heat_map_counts_a_bounded_number_of_points(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = Point.objects.visible_to(ann)
    counted = cells.cells_of(within)
    assert counted[0][2] >= counted[-1][2]
    assert sum(count for _, _, count in counted) == 37
    monkeypatch.setattr(cells, "MOST_READ", 10)
    assert sum(count for _, _, count in cells.cells_of(within)) == 10
