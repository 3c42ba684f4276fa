"""The sweeper repairs the state, and clusters no photo itself."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.db import clock as events_clock
from tailrace.domains.photos.clustering.cluster_photos import cluster_photos
from tailrace.domains.photos.invariants import PhotosSweep
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.models import Job, SweepRun
from tests.kit import sessions_that_wait, wait_until
from tests.photos.kit import (
    SQUARE,
    all_rows,
    assert_consistent,
    away,
    count_by_state,
    upload_photo,
    upload_photos,
)

pytestmark = pytest.mark.django_db(transaction=True)

GATHER = "photos.photos_gather"
GROW = "photos.active_gatherings_grow"
TRUE = "photos.gatherings_are_their_photos"
MINUTE = 60


def swept(name: str) -> SweepRun:
    (run,) = sweep([name])
    assert run.error == ""
    return run


@pytest.fixture
def turn(clock, run_jobs):
    """Return a sweep after so many minutes, with the jobs that it enqueues."""

    def at(minutes: float = 5) -> SweepRun:
        clock.step(minutes * MINUTE)
        run = swept(GATHER)
        run_jobs("photos.cluster")
        return run

    return at


def test_one_sweep_repairs_the_loss_of_all_jobs(turn) -> None:
    upload_photos(5)
    upload_photos(12, away(SQUARE, 1000))
    Job.objects.all().delete()
    run = turn(0)
    assert (run.found, run.repaired) == (17, 17)
    assert count_by_state() == {"clustered": 17}
    assert sorted(Gathering.objects.values_list("photo_count", flat=True)) == [5, 12]


def test_the_sweeper_clusters_nothing_itself() -> None:
    upload_photos(5)
    Job.objects.all().delete()
    swept(GATHER)
    assert count_by_state() == {"new": 5}
    assert Job.objects.filter(handler="photos.cluster", state="pending").count() == 5


def test_a_photo_whose_job_waits_gets_no_second_one() -> None:
    upload_photos(5)
    run = swept(GATHER)
    assert (run.found, run.repaired) == (5, 5)
    assert Job.objects.filter(handler="photos.cluster").count() == 5


def test_200_lone_photos_do_not_delay_newer_ones(clock, turn, run_jobs) -> None:
    for n in range(200):
        upload_photo(away(SQUARE, 200 * (n + 1)))
    run_jobs("photos.cluster")
    for _ in range(3):
        turn()
    newer = upload_photos(5, away(SQUARE, 400, 180))
    Job.objects.filter(state="pending").delete()
    for _ in range(2):
        turn()
    assert set(Photo.objects.filter(pk__in=[p.pk for p in newer]).values_list("state")) == {
        ("clustered",)
    }


def test_more_lone_photos_than_a_batch_do_not_delay_either(
    clock, monkeypatch, turn, run_jobs
) -> None:
    """A smaller batch, with five times as many lone photos, all due."""
    monkeypatch.setattr(PhotosSweep, "limit", 40)
    for n in range(200):
        upload_photo(away(SQUARE, 200 * (n + 1)))
    for _ in range(6):
        turn(1)
    clock.step(30 * MINUTE)
    newer = upload_photos(5, away(SQUARE, 400, 180))
    Job.objects.filter(state="pending").delete()
    turn(0)
    assert set(Photo.objects.filter(pk__in=[p.pk for p in newer]).values_list("state")) == {
        ("clustered",)
    }


def test_a_lone_photo_backs_off_and_becomes_unclusterable(turn) -> None:
    loner = upload_photo()
    tried = []
    for minute in range(0, 75, 5):
        if turn(5 if minute else 0).found:
            tried.append(minute)
    assert tried == [0, 5, 15, 35, 60]
    loner.refresh_from_db()
    assert (loner.state, loner.cluster_attempts, loner.next_try_at) == ("unclusterable", 5, None)
    assert loner.reason == "Fewer than 5 photos without a gathering within 75 m and 15 min"


def test_a_late_first_sweep_still_gives_a_last_try(turn) -> None:
    upload_photo()
    turn(600)
    assert count_by_state() == {"unclusterable": 1}


def given_up(turn, number: int = 1) -> list[Photo]:
    photos = upload_photos(number)
    turn(0)
    turn(61)
    assert count_by_state() == {"unclusterable": number}
    return photos


def test_a_new_neighbour_reopens_an_unclusterable_photo(turn, run_jobs) -> None:
    (old,) = given_up(turn)
    late = upload_photo(now=old.taken_at)
    run_jobs("photos.cluster")
    old.refresh_from_db()
    assert (old.state, old.cluster_attempts, old.reason) == ("new", 0, "")
    assert turn(0).found == 2  # and both are tried again
    before = all_rows()
    for _ in range(10):
        cluster_photos([late.pk, old.pk])
    assert all_rows() == before
    turn(61)
    assert count_by_state() == {"unclusterable": 2}
    cluster_photos([late.pk, old.pk])
    assert count_by_state() == {"unclusterable": 2}


def test_unclusterable_photos_start_one_with_a_neighbour(turn, run_jobs) -> None:
    photos = given_up(turn, 4)
    upload_photo(now=photos[0].taken_at)
    run_jobs("photos.cluster")
    assert count_by_state() == {"clustered": 5}


def test_a_distant_photo_reopens_no_other(turn, run_jobs) -> None:
    (old,) = given_up(turn)
    upload_photo(away(SQUARE, 200), now=old.taken_at)
    upload_photo(SQUARE)
    run_jobs("photos.cluster")
    old.refresh_from_db()
    assert old.state == "unclusterable"


def test_a_gathering_idle_for_an_hour_is_finalized(clock, run_jobs) -> None:
    upload_photos(5)
    run_jobs("photos.cluster")
    clock.step(59 * MINUTE)
    assert swept(GROW).found == 0
    clock.step(2 * MINUTE)
    run = swept(GROW)
    assert (run.found, run.repaired) == (1, 1)
    gathering = Gathering.objects.get()
    assert (gathering.state, gathering.finalized_at is not None) == ("FINALIZED", True)
    event = Event.objects.get(type="photos.gathering_finalized")
    assert event.payload["photo_count"] == 5
    assert swept(GROW).found == 0


def test_gatherings_are_finalized_in_bounded_batches(clock, monkeypatch, run_jobs) -> None:
    monkeypatch.setattr(PhotosSweep, "limit", 2)
    for n in range(3):
        upload_photos(5, away(SQUARE, 1000 * n))
    run_jobs("photos.cluster")
    clock.step(61 * MINUTE)
    assert [swept(GROW).repaired for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("state", ["ACTIVE", "FINALIZED"])
def test_a_gathering_is_repaired_from_its_photos(run_jobs, state) -> None:
    upload_photos(7, spread=20)
    upload_photos(6, away(SQUARE, 1000))
    run_jobs("photos.cluster")
    first, second = Gathering.objects.order_by("pk")
    Gathering.objects.filter(pk=first.pk).update(photo_count=99, sum_x=1, lat=0, state=state)
    out = Photo.objects.filter(pk=second.photos.first().pk)
    out.update(gathering=None, state="new", next_try_at=events_clock.now())
    run = swept(TRUE)
    assert (run.found, run.repaired) == (2, 2)
    for gathering in Gathering.objects.all():
        assert_consistent(gathering)
    assert swept(TRUE).found == 0
    assert swept(GATHER).found == 1  # the photo that was taken out is tried again


def test_a_gathering_without_photos_is_dissolved(run_jobs) -> None:
    upload_photos(5)
    run_jobs("photos.cluster")
    Photo.objects.all().delete()
    assert swept(TRUE).repaired == 1
    assert not Gathering.objects.exists()
    assert swept(TRUE).found == 0


def test_repeated_sweeps_check_every_gathering(settings, monkeypatch, clock, run_jobs) -> None:
    monkeypatch.setattr(PhotosSweep, "limit", 2)
    for n in range(7):
        upload_photos(5, away(SQUARE, 1000 * n))
    run_jobs("photos.cluster")
    Gathering.objects.update(photo_count=1, state="FINALIZED")
    for _ in range(8):
        swept(TRUE)
        clock.step(settings.PHOTOS_SWEEP_SECONDS)
    assert set(Gathering.objects.values_list("photo_count", flat=True)) == {5}


@pytest.mark.parametrize(
    "wrong",
    [{"state": "clustered"}, {"state": "new", "next_try_at": None}],
    ids=["clustered without a gathering", "new without a next try"],
)
def test_a_contradictory_photo_cannot_be_stored(wrong) -> None:
    loner = upload_photo()
    with pytest.raises(IntegrityError), transaction.atomic():
        Photo.objects.filter(pk=loner.pk).update(**wrong)


def test_a_sweep_with_nothing_to_repair_writes_one_record(turn, clock, run_jobs) -> None:
    given_up(turn)
    upload_photos(6, away(SQUARE, 900))
    run_jobs("photos.cluster")
    upload_photo(away(SQUARE, 5000))
    turn(0)
    before, events, jobs = all_rows(), Event.objects.count(), Job.objects.count()
    with CaptureQueriesContext(connection) as queries:
        runs = sweep([GATHER, GROW, TRUE])
    assert [(run.found, run.repaired, run.outcome) for run in runs] == [(0, 0, "checked")] * 3
    writes = [q["sql"] for q in queries if re.search(r"\b(INSERT|UPDATE|DELETE)\b", q["sql"])]
    writes = [sql for sql in writes if "FOR UPDATE" not in sql]
    assert len(writes) == 3
    assert all("tailrace_jobs_sweeprun" in sql for sql in writes), writes
    assert (all_rows(), Event.objects.count(), Job.objects.count()) == (before, events, jobs)


@pytest.mark.parametrize("name", [GATHER, GROW, TRUE])
def test_of_two_concurrent_sweeps_one_is_skipped(name) -> None:
    """The first waits for a lock, inside its transaction, when the second starts."""
    upload_photo()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "LOCK TABLE tailrace_photos_photo, tailrace_photos_gathering"
                " IN ACCESS EXCLUSIVE MODE"
            )
            first = pool.submit(_elsewhere, name)
            wait_until(
                lambda: sessions_that_wait("tailrace_photos_photo", "tailrace_photos_gathering"),
                what="the first sweep waits for the lock",
            )
            assert swept(name).outcome == "skipped"
        assert first.result(20).outcome == "checked"


def _elsewhere(name: str) -> SweepRun:
    try:
        return swept(name)
    finally:
        connection.close()
