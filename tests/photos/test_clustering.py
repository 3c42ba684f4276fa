"""Which photos gather: by distance and time, wherever on earth."""

from datetime import timedelta

import pytest

from domains.photos import clustering
from domains.photos.models import Gathering, Photo
from events import clock as events_clock
from events.models import Event
from tests.photos.stage import SQUARE, away, metres, photo, scene, states, table, true

pytestmark = pytest.mark.django_db

PLACES = {
    "a square": SQUARE,
    "an edge of cells": (52.52, 13.40),
    "a corner of cells": (0.0, 0.0),
    "the 180th meridian": (-16.5, 180.0),
    "just west of it": (-16.5, 179.9999),
    "just east of it": (-16.5, -179.9999),
    "a change of the rows' columns": (60.0, 24.93),
    "near the north pole": (89.9995, 77.0),
    "the north pole": (90.0, 0.0),
    "near the south pole": (-89.9996, -120.0),
}
places = pytest.mark.parametrize("place", PLACES.values(), ids=list(PLACES))


@pytest.fixture
def cluster(run_jobs):
    return lambda: run_jobs("photos.cluster")


def the_gathering() -> Gathering:
    gathering = Gathering.objects.get()
    true(gathering)
    return gathering


@places
@pytest.mark.parametrize("bearing", [0, 90, 200])
def test_74_metres_join_and_76_do_not(cluster, place, bearing) -> None:
    scene(5, place, spread=0)
    cluster()
    before = the_gathering()
    near = photo(away(place, 74, bearing))
    far = photo(away(place, 76, bearing + 180))
    assert metres(place, (near.lat, near.lon)) == pytest.approx(74, abs=0.001)
    clustering.cluster([far.pk])
    clustering.cluster([near.pk])
    near.refresh_from_db()
    far.refresh_from_db()
    assert (near.gathering_id, far.gathering_id) == (before.pk, None)
    assert the_gathering().photo_count == 6


@pytest.mark.parametrize("sign", [1, -1])
def test_14_59_joins_and_15_01_does_not(cluster, sign) -> None:
    now = events_clock.now() - timedelta(hours=1)
    for _ in range(5):
        photo(now=now)
    cluster()
    late = photo(minutes=sign * (15 + 1 / 60), now=now)
    soon = photo(minutes=sign * (15 - 1 / 60), now=now)
    clustering.cluster([late.pk])
    assert the_gathering().photo_count == 5
    clustering.cluster([soon.pk])
    assert the_gathering().photo_count == 6
    late.refresh_from_db()
    assert late.gathering_id is None


@pytest.mark.parametrize(("apart", "made"), [(15 - 1 / 60, 1), (15 + 1 / 60, 0)])
@pytest.mark.parametrize("order", [1, -1])
def test_five_found_a_gathering_within_15_minutes_of_the_newest(
    cluster, apart, made, order
) -> None:
    now = events_clock.now() - timedelta(hours=1)
    for n in (0, 1, 2, 3, 4)[::order]:
        clustering.cluster([photo(minutes=apart * n / 4, now=now).pk])
    assert Gathering.objects.count() == made


@places
@pytest.mark.parametrize(("reach", "made"), [(74, 1), (76, 0)])
def test_five_found_a_gathering_within_75_metres_of_the_newest(cluster, place, reach, made) -> None:
    for n in range(4):
        clustering.cluster([photo(away(place, reach, 90 * n), minutes=-1).pk])
    clustering.cluster([photo(place).pk])
    assert Gathering.objects.count() == made
    if made:
        the_gathering()


@places
def test_four_make_none_and_the_fifth_makes_one(cluster, place) -> None:
    scene(4, place, spread=30)
    cluster()
    assert not Gathering.objects.exists()
    assert states() == {"new": 4}
    photo(place)
    cluster()
    assert the_gathering().photo_count == 5
    assert states() == {"clustered": 5}


def test_the_oldest_of_five_may_come_last(cluster) -> None:
    now = events_clock.now()
    for minutes in (-2, -4, -6, 0):
        clustering.cluster([photo(minutes=minutes, now=now).pk])
    clustering.cluster([photo(minutes=-14, now=now).pk])
    assert the_gathering().photo_count == 5


def test_a_photo_joins_the_nearest_of_two_gatherings(cluster) -> None:
    scene(5, SQUARE)
    scene(5, away(SQUARE, 120))
    cluster()
    west, east = sorted(Gathering.objects.all(), key=lambda one: one.lon)
    nearer = photo(away(SQUARE, 61))
    cluster()
    nearer.refresh_from_db()
    assert nearer.gathering_id == east.pk
    for gathering in Gathering.objects.all():
        true(gathering)
    assert west.photo_count == 5


def test_a_finalized_gathering_is_not_joined(cluster) -> None:
    scene(5)
    cluster()
    Gathering.objects.update(state="FINALIZED")
    scene(5)
    cluster()
    assert sorted(Gathering.objects.values_list("state", "photo_count")) == [
        ("ACTIVE", 5),
        ("FINALIZED", 5),
    ]


def test_neighbours_on_another_day_are_others(cluster) -> None:
    now = events_clock.now() - timedelta(days=9)
    for day in range(5):
        photo(minutes=day * 1440, now=now)
    cluster()
    assert states() == {"new": 5}


def test_everything_replayed_ten_times_changes_nothing(cluster) -> None:
    scene(7)
    scene(3, away(SQUARE, 500))
    photo(away(SQUARE, 5000))
    cluster()
    before, events = table(), Event.objects.count()
    ids = list(Photo.objects.values_list("pk", flat=True))
    for _ in range(10):
        clustering.cluster(ids)
        for id in ids:
            clustering.cluster([id])
    assert table() == before
    assert Event.objects.count() == events
    assert states() == {"clustered": 7, "new": 4}


def test_a_gathering_says_when_it_starts(cluster) -> None:
    scene(5)
    cluster()
    photo()
    cluster()
    gathering = the_gathering()
    event = Event.objects.get(type="photos.gathering_started")
    assert event.subject == f"gathering/{gathering.pk}"
    assert (event.payload["gathering"], event.payload["photo_count"]) == (gathering.pk, 5)


def test_a_photo_that_is_gone_is_skipped(run_jobs) -> None:
    from jobs.models import Job

    gone = photo()
    gone.delete()
    run_jobs("photos.cluster")
    assert Job.objects.filter(handler="photos.cluster").values_list("state", "error").get() == (
        "skipped",
        "the photo is gone",
    )


def test_the_settings_are_heeded(cluster, settings) -> None:
    settings.PHOTOS_DISTANCE_METERS, settings.PHOTOS_MIN_FOR_GATHERING = 3000, 2
    settings.PHOTOS_TIME_WINDOW_MINUTES = 1
    photo(SQUARE)
    photo(away(SQUARE, 2990), minutes=-0.9)
    photo(away(SQUARE, 3010, 270), minutes=-0.5)
    cluster()
    assert the_gathering().photo_count == 2
