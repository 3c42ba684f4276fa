"""Which photos form gatherings, by distance and time, anywhere on the earth."""

from datetime import timedelta

import pytest

from tailrace.db import clock as events_clock
from tailrace.domains.photos.clustering.cluster_photos import cluster_photos
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.events.models import Event
from tests.photos.kit import (
    SQUARE,
    all_rows,
    assert_consistent,
    away,
    count_by_state,
    metres,
    upload_photo,
    upload_photos,
)

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
    assert_consistent(gathering)
    return gathering


@places
@pytest.mark.parametrize("bearing", [0, 90, 200])
def test_74_metres_join_and_76_do_not(cluster, place, bearing) -> None:
    upload_photos(5, place, spread=0)
    cluster()
    before = the_gathering()
    near = upload_photo(away(place, 74, bearing))
    far = upload_photo(away(place, 76, bearing + 180))
    assert metres(place, (near.lat, near.lon)) == pytest.approx(74, abs=0.001)
    cluster_photos([far.pk])
    cluster_photos([near.pk])
    near.refresh_from_db()
    far.refresh_from_db()
    assert (near.gathering_id, far.gathering_id) == (before.pk, None)
    assert the_gathering().photo_count == 6


@pytest.mark.parametrize("sign", [1, -1])
def test_14_59_joins_and_15_01_does_not(cluster, sign) -> None:
    now = events_clock.now() - timedelta(hours=1)
    for _ in range(5):
        upload_photo(now=now)
    cluster()
    late = upload_photo(minutes=sign * (15 + 1 / 60), now=now)
    soon = upload_photo(minutes=sign * (15 - 1 / 60), now=now)
    cluster_photos([late.pk])
    assert the_gathering().photo_count == 5
    cluster_photos([soon.pk])
    assert the_gathering().photo_count == 6
    late.refresh_from_db()
    assert late.gathering_id is None


@pytest.mark.parametrize(("apart", "count"), [(15 - 1 / 60, 1), (15 + 1 / 60, 0)])
@pytest.mark.parametrize("order", [1, -1])
def test_five_within_15_minutes_of_the_newest_start_a_gathering(
    cluster, apart, count, order
) -> None:
    now = events_clock.now() - timedelta(hours=1)
    for n in (0, 1, 2, 3, 4)[::order]:
        cluster_photos([upload_photo(minutes=apart * n / 4, now=now).pk])
    assert Gathering.objects.count() == count


@places
@pytest.mark.parametrize(("reach", "count"), [(74, 1), (76, 0)])
def test_five_within_75_metres_of_the_newest_start_a_gathering(
    cluster, place, reach, count
) -> None:
    for n in range(4):
        cluster_photos([upload_photo(away(place, reach, 90 * n), minutes=-1).pk])
    cluster_photos([upload_photo(place).pk])
    assert Gathering.objects.count() == count
    if count:
        the_gathering()


@places
def test_the_fifth_photo_starts_a_gathering(cluster, place) -> None:
    upload_photos(4, place, spread=30)
    cluster()
    assert not Gathering.objects.exists()
    assert count_by_state() == {"new": 4}
    upload_photo(place)
    cluster()
    assert the_gathering().photo_count == 5
    assert count_by_state() == {"clustered": 5}


def test_the_oldest_of_five_may_come_last(cluster) -> None:
    now = events_clock.now()
    for minutes in (-2, -4, -6, 0):
        cluster_photos([upload_photo(minutes=minutes, now=now).pk])
    cluster_photos([upload_photo(minutes=-14, now=now).pk])
    assert the_gathering().photo_count == 5


def test_a_photo_joins_the_nearest_of_two_gatherings(cluster) -> None:
    upload_photos(5, SQUARE)
    upload_photos(5, away(SQUARE, 120))
    cluster()
    west, east = sorted(Gathering.objects.all(), key=lambda gathering: gathering.lon)
    nearer = upload_photo(away(SQUARE, 61))
    cluster()
    nearer.refresh_from_db()
    assert nearer.gathering_id == east.pk
    for gathering in Gathering.objects.all():
        assert_consistent(gathering)
    assert west.photo_count == 5


def test_a_finalized_gathering_is_not_joined(cluster) -> None:
    upload_photos(5)
    cluster()
    Gathering.objects.update(state="FINALIZED")
    upload_photos(5)
    cluster()
    assert sorted(Gathering.objects.values_list("state", "photo_count")) == [
        ("ACTIVE", 5),
        ("FINALIZED", 5),
    ]


def test_photos_of_other_days_do_not_gather(cluster) -> None:
    now = events_clock.now() - timedelta(days=9)
    for day in range(5):
        upload_photo(minutes=day * 1440, now=now)
    cluster()
    assert count_by_state() == {"new": 5}


def test_replaying_all_photos_changes_nothing(cluster) -> None:
    upload_photos(7)
    upload_photos(3, away(SQUARE, 500))
    upload_photo(away(SQUARE, 5000))
    cluster()
    before, events = all_rows(), Event.objects.count()
    ids = list(Photo.objects.values_list("pk", flat=True))
    for _ in range(10):
        cluster_photos(ids)
        for id in ids:
            cluster_photos([id])
    assert all_rows() == before
    assert Event.objects.count() == events
    assert count_by_state() == {"clustered": 7, "new": 4}


def test_a_new_gathering_publishes_an_event(cluster) -> None:
    upload_photos(5)
    cluster()
    upload_photo()
    cluster()
    gathering = the_gathering()
    event = Event.objects.get(type="photos.gathering_started")
    assert event.subject == f"gathering/{gathering.pk}"
    assert (event.payload["gathering"], event.payload["photo_count"]) == (gathering.pk, 5)


def test_a_deleted_photo_is_skipped(run_jobs) -> None:
    from tailrace.jobs.models import Job

    photo = upload_photo()
    photo.delete()
    run_jobs("photos.cluster")
    assert Job.objects.filter(handler="photos.cluster").values_list("state", "error").get() == (
        "skipped",
        "the photo was deleted",
    )


def test_the_settings_apply(cluster, settings) -> None:
    settings.PHOTOS_DISTANCE_METERS, settings.PHOTOS_MIN_FOR_GATHERING = 3000, 2
    settings.PHOTOS_TIME_WINDOW_MINUTES = 1
    upload_photo(SQUARE)
    upload_photo(away(SQUARE, 2990), minutes=-0.9)
    upload_photo(away(SQUARE, 3010, 270), minutes=-0.5)
    cluster()
    assert the_gathering().photo_count == 2
