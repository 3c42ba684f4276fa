"""Where a user was at a time, by the user's own points."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.points.positions import MAX_TIMES, POINTS_LOOKED_AT, positions_at
from tests.across.kit import add_points, minutes

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
GAP = 600


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def position(user: User, at: datetime = AT) -> tuple[float, float] | None:
    return positions_at(user.pk, {7: at}, GAP).get(7)


def test_between_two_points_it_is_interpolated(ana: User) -> None:
    add_points(ana, [(AT - minutes(1), 46.0, 13.0), (AT + minutes(3), 46.4, 13.8)])
    assert position(ana) == (pytest.approx(46.1), pytest.approx(13.2))


def test_across_the_180th_meridian_it_is_interpolated_the_short_way(ana: User) -> None:
    add_points(ana, [(AT - minutes(1), 0.0, 179.9), (AT + minutes(3), 0.0, -179.7)])
    assert abs((position(ana) or (0, 0))[1]) == pytest.approx(180.0)
    assert position(ana, AT + minutes(1)) == (0.0, pytest.approx(-179.9))


def test_beside_the_track_the_nearest_point_counts(ana: User) -> None:
    add_points(ana, [(AT - minutes(9), 46.0, 13.0)])
    assert position(ana) == (46.0, 13.0)


def test_a_point_beyond_the_gap_counts_for_nothing(ana: User) -> None:
    add_points(ana, [(AT - timedelta(seconds=GAP + 1), 46.0, 13.0)])
    add_points(ana, [(AT + timedelta(seconds=GAP + 1), 46.0, 13.0)])
    assert position(ana) is None


def test_the_device_with_the_nearest_point_decides(ana: User) -> None:
    add_points(ana, [(AT - minutes(5), 50.0, 8.0), (AT + minutes(5), 50.0, 8.0)], device="home")
    add_points(ana, [(AT - minutes(2), 46.0, 13.0)], device="watch")
    assert position(ana) == (46.0, 13.0)


def test_inaccurate_and_hidden_points_are_passed_over(ana: User) -> None:
    add_points(ana, [(AT, 50.0, 8.0)], accuracy=2000)
    hidden = Import.objects.create(
        user=ana, device=Device.objects.get(user=ana), file_name="a.gpx", storage_key="a", size=1
    )
    add_points(ana, [(AT + minutes(1), 51.0, 8.0)], origin=hidden)
    add_points(ana, [(AT + minutes(2), 46.0, 13.0)], accuracy=20)
    assert position(ana) == (46.0, 13.0)


def test_a_bounded_number_of_points_and_times_is_looked_at(ana: User) -> None:
    bad = [(AT + timedelta(milliseconds=n), 50.0, 8.0) for n in range(POINTS_LOOKED_AT)]
    add_points(ana, bad, accuracy=2000)
    add_points(ana, [(AT + minutes(1), 46.0, 13.0)])
    assert position(ana) is None
    with pytest.raises(ValueError, match="at most 100"):
        positions_at(ana.pk, dict.fromkeys(range(MAX_TIMES + 1), AT), GAP)
