"""An undo removes a source from points; points go with their last source."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions, quotas
from tailrace.domains.timeline.imports.decisions import NotNow
from tailrace.domains.timeline.models import Device, Point, PointSource
from tailrace.web.accounts.deletion import request_deletion
from tailrace.web.uploads.errors import QuotaExceeded
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import START, expected, gpx, now, numbers, stored, track, upload
from tests.timeline.sources.kit import Run, imported, phone_sends, seen, undone
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def test_points_that_the_phone_sent_after_the_import_stay(ann: User, run_imports: Run) -> None:
    row = imported(ann, track(100), run_imports)
    assert phone_sends(ann, track(10)) == 0, "they are seen already"
    text = Visitor(ann).text(f"/timeline/imports/{row.pk}/undo")
    assert "90 points of 1 day will be removed from your timeline" in text
    row = undone(row, run_imports)
    assert stored(ann) == seen(ann) == expected(track(10))
    assert row.removed == 90
    assert Device.objects.get().live_points == quotas.usage_of(ann.pk).points == 10


def test_points_that_the_phone_sent_before_the_import_stay(ann: User, run_imports: Run) -> None:
    phone_sends(ann, track(10))
    row = imported(ann, track(100), run_imports)
    assert numbers(row) == (90, 10, 0)
    assert undone(row, run_imports).removed == 90
    assert stored(ann) == seen(ann) == expected(track(10))


def test_points_of_other_imports_stay(ann: User, run_imports: Run) -> None:
    first = imported(ann, track(1000), run_imports)
    again = imported(ann, track(1000), run_imports)
    other = imported(ann, track(2500, first=500), run_imports)
    assert (numbers(again), numbers(other)) == ((0, 1000, 0), (2000, 500, 0))
    decisions.undo(first.pk)
    assert seen(ann) == expected(track(3000)), "they are seen all the time"
    run_imports()
    assert stored(ann) == seen(ann) == expected(track(3000))
    first = now(first)
    assert (first.state, first.removed) == ("undone", 0)
    undone(again, run_imports)
    assert stored(ann) == seen(ann) == expected(track(2500, first=500))
    assert now(other).state == "completed"
    undone(other, run_imports)
    assert (stored(ann), quotas.usage_of(ann.pk).points) == ([], 0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_undos_at_once_leave_nothing(
    ann: User, run_imports: Run, order: tuple[int, int]
) -> None:
    rows = [imported(ann, points, run_imports) for points in (track(50), track(60, first=30))]
    for number in order:
        decisions.undo(rows[number].pk)
    assert seen(ann) == []
    run_imports()
    assert stored(ann) == []
    assert [now(row).state for row in rows] == ["undone", "undone"]
    assert quotas.usage_of(ann.pk).points == 0


def test_a_point_is_announced_to_the_phone_as_new_if_it_was_hidden(
    ann: User, run_imports: Run
) -> None:
    row = imported(ann, track(10), run_imports)
    decisions.undo(row.pk)
    assert phone_sends(ann, track(4)) == 4
    assert phone_sends(ann, track(6)) == 2
    assert seen(ann) == expected(track(6))
    run_imports()
    assert stored(ann) == seen(ann) == expected(track(6))
    assert Device.objects.get().live_points == 6


def test_the_towns_of_points_that_stay_keep_their_names(ann: User, run_imports: Run) -> None:
    points = [(START + timedelta(minutes=n), 52.40 + n / 1e4, 13.06) for n in range(20)]
    first, second = (imported(ann, points, run_imports) for _ in range(2))
    assert len(Visitor(ann).get(f"/timeline/imports/{second.pk}/track").json()[0]) == 20
    undone(first, run_imports)
    assert "Near Potsdam (DE)." in Visitor(ann).text("/timeline/days/2026-03-01")


def test_points_that_stay_in_any_case_need_no_further_source(
    ann: User, run_imports: Run, clock, settings
) -> None:
    phone_sends(ann, track(10))
    old = imported(ann, track(30), run_imports)
    assert PointSource.objects.count() == 0, "the phone's points stay"
    clock.step(settings.IMPORT_UNDO_DAYS * 86_400 + 7200)
    new = imported(ann, track(50), run_imports)
    phone_sends(ann, track(40))
    assert PointSource.objects.count() == 10, "the old import stays"
    settings.IMPORT_UNDO_DAYS = 365
    with pytest.raises(NotNow, match="more than 30 days ago"):
        decisions.undo(old.pk)
    undone(new, run_imports)
    assert stored(ann) == seen(ann) == expected(track(40))
    assert PointSource.objects.count() == 0


def test_further_sources_count_for_the_quota_of_imports(
    ann: User, run_imports: Run, settings
) -> None:
    settings.TIMELINE_MAX_POINTS_PER_USER = 20
    for _ in range(2):
        imported(ann, track(10), run_imports)
    with pytest.raises(QuotaExceeded, match="TIMELINE_MAX_POINTS_PER_USER"):
        upload(ann, gpx(track(10)))
    assert phone_sends(ann, track(5, first=10)) == 5, "the phone is not limited by them"


def test_nothing_of_it_stays_after_the_account(ann: User, run_imports: Run, run_jobs) -> None:
    for _ in range(2):
        imported(ann, track(10), run_imports)
    assert PointSource.objects.count() == 10
    request_deletion(ann)
    run_jobs("web.delete_account", "timeline.discard")
    assert not PointSource.objects.exists()
    assert not Point.objects.exists()
