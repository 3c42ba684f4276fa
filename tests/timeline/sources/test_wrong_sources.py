"""`manage.py fsck` finds sources without points and points without sources, and repairs them."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import quotas
from tailrace.domains.timeline.invariants import PointsHaveSources
from tailrace.domains.timeline.models import Import, Point, PointSource
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import expected, now, stored, track
from tests.timeline.sources.kit import Run, imported, phone_sends, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def repaired() -> list[tuple[int, int]]:
    """Repair all violations and return them; afterwards there are none."""
    invariant = PointsHaveSources()
    violations = list(invariant.find())
    assert invariant.repair(violations) == len(violations)
    assert list(invariant.find()) == []
    return violations


def test_nothing_is_wrong_with_shared_points(ann: User, run_imports: Run) -> None:
    imported(ann, track(30), run_imports)
    imported(ann, track(30, first=10), run_imports)
    phone_sends(ann, track(15))
    assert PointSource.objects.count() == 20 + 15
    assert repaired() == []


def test_a_point_that_was_lost_is_there_again(ann: User, run_imports: Run) -> None:
    first, second = (imported(ann, track(30), run_imports) for _ in range(2))
    Point.objects.filter(recorded_at__in=[at for at, _, _ in track(5)]).delete()
    assert repaired() == [(first.device_id, second.pk)]
    assert seen(ann) == expected(track(30))
    assert (now(second).inserted, now(second).duplicates, now(second).shared) == (5, 25, 25)


def test_points_of_an_import_that_has_ended_without_points_go(ann: User, run_imports: Run) -> None:
    first, second = imported(ann, track(30), run_imports), imported(ann, track(9), run_imports)
    Import.objects.filter(pk=first.pk).update(state="cancelled", visible=False)
    assert repaired() == [(first.device_id, first.pk)]
    assert stored(ann) == seen(ann) == expected(track(9))
    assert now(second).inserted == quotas.usage_of(ann.pk).points == 9


def test_points_of_an_import_that_does_not_exist_go(ann: User, run_imports: Run) -> None:
    first, second = imported(ann, track(30), run_imports), imported(ann, track(40), run_imports)
    phone_sends(ann, track(7))
    for row in (first, second):
        Import.objects.filter(pk=row.pk).delete()
    assert repaired() == [(first.device_id, first.pk), (first.device_id, second.pk)]
    assert stored(ann) == seen(ann) == expected(track(7))


def test_a_source_is_not_there_twice(ann: User, run_imports: Run) -> None:
    row = imported(ann, track(3), run_imports)
    point = Point.objects.first()
    assert point
    PointSource.objects.create(
        device_id=row.device_id, recorded_at=point.recorded_at, import_id=row.pk,
        lon=point.lon, lat=point.lat,
    )  # fmt: skip
    assert repaired() == [(row.device_id, row.pk)]
    assert stored(ann) == expected(track(3))
