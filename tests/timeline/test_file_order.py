"""Points of a file with the same time keep the order of the file, wherever they are read."""

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.staging import FileOrder
from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.points import days
from tailrace.domains.timeline.points.positions import positions_at
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import START, gpx, now, upload
from tests.web.program import Program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db

BACK = [(START + timedelta(minutes=n // 6), 48.0, round(11.6 - n / 100, 2)) for n in range(18)]
"""A way to the west, with the times of an export in whole minutes."""


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def imported(ann: User, run_imports: Callable[[], int]) -> Callable[..., None]:
    def run(file: bytes, device: str = "") -> None:
        row = upload(ann, file, device)
        run_imports()
        decisions.promote_now(row.pk)
        run_imports()
        assert now(row).state == "completed"

    return run


def timeline(points: list[tuple[datetime, float, float]]) -> bytes:
    """Return the points as the timeline of an Android phone: a path per hour."""
    path = [{"point": f"{lat}°, {lon}°", "time": at.isoformat()} for at, lat, lon in points]
    segment = {"startTime": points[0][0].isoformat(), "timelinePath": path}
    return json.dumps({"semanticSegments": [segment]}, ensure_ascii=False).encode()


def exported(ann: User, device: str, file_format: str) -> bytes:
    query = f"first=2026-03-01&last=2026-03-02&device={device}&format={file_format}"
    answer = Program(ann).get(f"/timeline/export?{query}")
    return b"".join(answer.streaming_content)


@pytest.mark.parametrize("file_of", [gpx, timeline])
def test_a_way_in_whole_minutes_comes_back_as_it_was(ann: User, imported, file_of) -> None:
    imported(file_of(BACK))
    lons = [lon for _, _, lon in BACK]

    page = Program(ann).get("/timeline/points?day=2026-03-01&limit=7").json()
    listed = page["items"]
    while page["next"]:
        url = f"/timeline/points?day=2026-03-01&limit=7&cursor={page['next']}"
        page = Program(ann).get(url).json()
        listed += page["items"]
    assert [item["lon"] for item in listed] == lons
    [line] = Visitor(ann).get("/timeline/days/2026-03-01/track").json()
    assert [lon for _, lon in line] == lons
    assert [item["recorded_at"] for item in listed] == sorted(
        at.isoformat().replace("+00:00", "Z") for at, _, _ in BACK
    ), "the times are those of the file"


@pytest.mark.parametrize("file_format", ["gpx", "geojson"])
def test_an_export_that_is_imported_again_has_the_same_order(
    ann: User, imported, file_format: str
) -> None:
    imported(gpx(BACK), "first")
    file = exported(ann, "first", file_format)
    imported(file, "second")
    first, second = (exported(ann, device, "gpx") for device in ("first", "second"))
    assert second == first.replace(b"<name>first<", b"<name>second<")
    assert first.index(b'lon="11.6') < first.index(b'lon="11.55')


def test_points_are_read_in_chunks_of_any_size_in_the_same_order(ann: User, imported) -> None:
    random_ = random.Random(7)
    points = [(at, random_.uniform(40, 50), lon) for at, _, lon in BACK for _ in range(3)]
    imported(gpx(points))
    visible = Point.objects.visible_to(ann).filter(device=Device.objects.get())
    for chunk in (1, 2, 5, 100):
        read = [point.lat for point in days.in_order(visible, chunk)]
        assert read == [round(lat * 1e7) for _, lat, _ in points]


def test_a_photo_of_that_minute_is_at_the_last_or_the_first_of_its_points(
    ann: User, imported
) -> None:
    imported(gpx(BACK[:6]))
    assert positions_at(ann.pk, {1: START + timedelta(seconds=30)}, 600)[1] == (48.0, 11.55)
    assert positions_at(ann.pk, {1: START - timedelta(seconds=30)}, 600)[1] == (48.0, 11.6)


def test_points_with_times_of_their_own_take_no_space(ann: User, imported) -> None:
    later = [(START + timedelta(seconds=n), 48.0, 11.0) for n in range(50)]
    imported(gpx(later), "forwards")
    imported(gpx(later[::-1]), "backwards")
    assert not Point.objects.exclude(file_order=None).exists()
    imported(gpx(BACK), "minutes")
    assert Point.objects.exclude(file_order=None).count() == 15


def test_days_list_the_same_points_as_before(ann: User, imported) -> None:
    imported(gpx(BACK))
    within = days.period(date(2026, 3, 1), date(2026, 3, 1), UTC)
    assert [(day.points, day.first_at) for day in days.days_of(ann, within, UTC)] == [(18, START)]


@pytest.mark.parametrize("seed", range(20))
def test_numbers_keep_the_order_of_any_file_in_any_pieces(seed: int) -> None:
    random_ = random.Random(seed)
    times = [random_.randrange(30) for _ in range(200)]
    if seed % 4 == 0:
        times.sort(reverse=bool(seed % 8))
    points = [(time, index, 0, None, None, None, None) for index, time in enumerate(times)]
    order, numbers = FileOrder(), []
    start = 0
    while start < len(points):
        piece = points[start : start + random_.randrange(1, 60)]
        numbers += order.numbers(piece) or [None] * len(piece)
        start += len(piece)
    numbered = sorted(
        zip(points, numbers, strict=True), key=lambda each: (each[0][0], each[1] or 0)
    )
    for _, same in groupby(numbered, lambda each: each[0][0]):
        group = list(same)
        assert [point[1] for point, _ in group] == sorted(point[1] for point, _ in group)
        assert [number for _, number in group].count(None) <= 1
