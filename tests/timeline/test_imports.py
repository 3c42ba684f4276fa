"""Imports from upload to timeline: stage, grace, promote, and what the owner decides meanwhile."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.decisions import NotNow
from tailrace.domains.timeline.imports.steps import promote
from tailrace.domains.timeline.models import Device, Import, Point
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import (
    START,
    expected,
    files_in,
    gpx,
    now,
    numbers,
    staged_tables,
    stored,
    track,
    upload,
    visible,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def imported(ann: User, run_imports, clock):
    """Return `imported(file, …)`: an import that has run to its end."""

    def run(file: bytes, **more: str) -> Import:
        row = upload(ann, file, **more)
        run_imports()
        clock.step(301)
        run_imports()
        return now(row)

    return run


def test_an_import_goes_through_its_states(
    ann: User, run_imports, clock, import_folder: Path
) -> None:
    row = upload(ann, gpx([*track(5), (None, 52.0, 13.0)]))
    assert (row.state, row.size) == ("queued", files_in(import_folder)[0].stat().st_size)
    run_imports()
    row = now(row)
    assert (row.state, row.staged, row.rejected, row.expected_duplicates) == ("grace", 5, 1, 0)
    assert row.promote_at
    assert abs(row.promote_at - clock.now() - timedelta(seconds=300)) < timedelta(seconds=60)
    assert row.tally["rejected"] == {"no time": 1}
    assert row.tally["first_rejected"][0]["line"] == 7
    assert (staged_tables(), stored(ann)) == ([row.pk], [])
    clock.step(290)
    run_imports()
    assert now(row).state == "grace"
    clock.step(20)
    run_imports()
    row = now(row)
    assert (row.state, numbers(row), row.visible) == ("completed", (5, 0, 1), True)
    assert stored(ann) == expected(track(5))
    assert visible(ann) == 5
    assert staged_tables() == []


def test_the_same_file_again_brings_nothing_new(ann: User, imported, run_imports) -> None:
    first = imported(gpx(track(30)))
    row = upload(ann, gpx(track(30) + track(3, first=100)))
    run_imports()
    assert now(row).expected_duplicates == 30
    again = imported(gpx(track(30)))
    assert numbers(first) == (30, 0, 0)
    assert (again.state, numbers(again)) == ("completed", (0, 30, 0))
    assert numbers(row) == (3, 30, 0)


def test_points_of_one_file_that_are_the_same_are_duplicates(ann: User, imported) -> None:
    row = imported(gpx(track(4) + track(4)))
    assert (row.expected_duplicates, numbers(row)) == (4, (4, 4, 0))


def test_several_points_of_one_time_are_kept(ann: User, imported) -> None:
    points = [(START, 52.0 + n / 1e7, 13.0) for n in range(3)]
    assert numbers(imported(gpx(points))) == (3, 0, 0)
    assert stored(ann) == expected(points)


def test_two_devices_have_points_of_their_own(ann: User, imported) -> None:
    imported(gpx(track(3)), device="watch")
    assert numbers(imported(gpx(track(3)), device="phone")) == (3, 0, 0)
    assert sorted(Device.objects.values_list("name", flat=True)) == ["phone", "watch"]


def test_an_import_in_its_grace_is_cancelled(ann, run_imports, clock, import_folder: Path) -> None:
    row = upload(ann, gpx(track(5)))
    run_imports()
    decisions.cancel(row.pk)
    run_imports()
    clock.step(400)
    run_imports()
    assert (now(row).state, stored(ann), staged_tables()) == ("cancelled", [], [])
    assert files_in(import_folder) == []
    assert now(row).storage_key == ""
    with pytest.raises(NotNow, match="the import is already cancelled"):
        decisions.cancel(row.pk)


def test_a_queued_import_is_cancelled(ann, run_imports, import_folder: Path) -> None:
    row = upload(ann, gpx(track(5)))
    decisions.cancel(row.pk)
    run_imports()
    assert (now(row).state, now(row).staged, files_in(import_folder)) == ("cancelled", 0, [])


def test_promote_now_skips_the_grace(ann, run_imports) -> None:
    row = upload(ann, gpx(track(5)))
    with pytest.raises(NotNow, match="this import is queued"):
        decisions.promote_now(row.pk)
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    assert (now(row).state, visible(ann)) == ("completed", 5)
    with pytest.raises(NotNow, match="undo it instead"):
        decisions.cancel(row.pk)
    decisions.undo(row.pk)
    with pytest.raises(NotNow, match="the import is being undone"):
        decisions.cancel(row.pk)


def test_a_cut_file_needs_a_decision(ann, run_imports, clock) -> None:
    row = upload(ann, gpx(track(5), end=""))
    run_imports()
    clock.step(1000)
    run_imports()
    row = now(row)
    assert (row.state, row.staged, stored(ann)) == ("needs_decision", 5, [])
    assert "line 7" in row.error
    decisions.promote_now(row.pk)
    run_imports()
    assert (now(row).state, numbers(row), visible(ann)) == ("completed", (5, 0, 0), 5)


def test_a_decision_may_be_to_cancel(ann, run_imports) -> None:
    row = upload(ann, gpx(track(5), end=""))
    run_imports()
    decisions.cancel(row.pk)
    run_imports()
    assert (now(row).state, stored(ann), staged_tables()) == ("cancelled", [], [])


@pytest.mark.parametrize(
    ("file", "error"),
    [
        (b"hello\n", "This file is not a location history"),
        (gpx([(None, 1.0, 2.0)] * 3), "None of the 3 points in the file can be used (no time: 3)."),
        (gpx([]), "The file contains no points."),
    ],
)
def test_a_file_without_a_point_fails(ann, run_imports, import_folder, file, error) -> None:
    row = upload(ann, file)
    run_imports()
    assert now(row).state == "failed"
    assert now(row).error.startswith(error)
    assert (staged_tables(), files_in(import_folder)) == ([], [])


def test_undo_removes_exactly_what_the_import_brought(ann, imported, run_imports) -> None:
    imported(gpx(track(10)))
    second = imported(gpx(track(20, first=5)))
    assert numbers(second) == (15, 5, 0)
    decisions.undo(second.pk)
    assert visible(ann) == 10, "hidden at once"
    run_imports()
    assert stored(ann) == expected(track(10))
    second = now(second)
    assert (second.state, second.removed) == ("undone", 15)
    assert numbers(imported(gpx(track(20, first=5)))) == (15, 5, 0)
    with pytest.raises(NotNow, match="this import is undone"):
        decisions.undo(second.pk)


def test_undo_is_possible_for_some_days(ann, imported, clock, settings) -> None:
    row = imported(gpx(track(3)))
    clock.step(settings.IMPORT_UNDO_DAYS * 86_400 + 60)
    with pytest.raises(NotNow, match="more than 30 days ago"):
        decisions.undo(row.pk)
    assert visible(ann) == 3


def test_an_import_waits_while_another_of_its_device_is_undone(
    ann, imported, run_imports, run_jobs
) -> None:
    first = imported(gpx(track(10)))
    second = upload(ann, gpx(track(10)))
    run_imports()
    decisions.undo(first.pk)
    decisions.promote_now(second.pk)
    run_jobs("timeline.promote")
    assert now(second).state == "grace", "its points would be duplicates of points that go"
    run_jobs("timeline.undo")
    promote.BUSY_SECONDS = 0
    decisions.promote_now(second.pk)
    run_imports()
    assert (numbers(second), visible(ann)) == ((10, 0, 0), 10)


def test_a_file_is_kept_for_a_while(ann, imported, import_folder, settings, run_imports) -> None:
    assert imported(gpx(track(3))).storage_key
    settings.IMPORT_FILES_RETENTION_DAYS = 0
    row = imported(gpx(track(3, first=50)))
    assert row.storage_key == ""
    assert len(files_in(import_folder)) == 1


def test_a_longer_file_than_allowed_is_left_to_its_owner(ann, run_imports, settings) -> None:
    settings.IMPORT_MAX_POINTS = 7
    row = upload(ann, gpx(track(20)))
    run_imports()
    row = now(row)
    assert (row.state, row.staged) == ("needs_decision", 7)
    assert "more points than may be imported: 7" in row.error
    assert Point.objects.count() == 0
