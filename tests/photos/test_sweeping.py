"""The sweeper makes the state converge, and clusters nothing itself."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from domains.photos import clustering
from domains.photos.models import Gathering, Photo
from events import clock as events_clock
from events.models import Event
from jobs.models import Job, SweepRun
from jobs.sweep import sweep
from tests.kit import wait_until
from tests.photos.stage import SQUARE, away, photo, scene, states, table, true

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
    """Return a sweep after so many minutes, with the work that it owes."""

    def at(minutes: float = 5) -> SweepRun:
        clock.step(minutes * MINUTE)
        run = swept(GATHER)
        run_jobs("photos.cluster")
        return run

    return at


def test_one_sweep_after_all_jobs_were_lost_all_is_assigned(turn) -> None:
    scene(5)
    scene(12, away(SQUARE, 1000))
    Job.objects.all().delete()
    run = turn(0)
    assert (run.found, run.repaired) == (17, 17)
    assert states() == {"clustered": 17}
    assert sorted(Gathering.objects.values_list("photo_count", flat=True)) == [5, 12]


def test_the_sweeper_clusters_nothing_itself() -> None:
    scene(5)
    Job.objects.all().delete()
    swept(GATHER)
    assert states() == {"new": 5}
    assert Job.objects.filter(handler="photos.cluster", state="pending").count() == 5


def test_a_photo_whose_job_waits_gets_no_second_one() -> None:
    scene(5)
    run = swept(GATHER)
    assert (run.found, run.repaired) == (5, 0)
    assert Job.objects.filter(handler="photos.cluster").count() == 5


def test_200_loners_delay_no_newer_photo_past_two_sweeps(clock, turn, run_jobs) -> None:
    for n in range(200):
        photo(away(SQUARE, 200 * (n + 1)))
    run_jobs("photos.cluster")
    for _ in range(3):
        turn()
    newer = scene(5, away(SQUARE, 400, 180))
    Job.objects.filter(state="pending").delete()
    for _ in range(2):
        turn()
    assert set(Photo.objects.filter(pk__in=[p.pk for p in newer]).values_list("state")) == {
        ("clustered",)
    }


def test_a_thousand_loners_do_not_either(clock, settings, turn, run_jobs) -> None:
    """A batch a fifth as large, with as many loners as five of them, all due."""
    settings.PHOTOS_SWEEP_BATCH = 40
    for n in range(200):
        photo(away(SQUARE, 200 * (n + 1)))
    for _ in range(6):
        turn(1)
    clock.step(30 * MINUTE)
    newer = scene(5, away(SQUARE, 400, 180))
    Job.objects.filter(state="pending").delete()
    turn(0)
    assert set(Photo.objects.filter(pk__in=[p.pk for p in newer]).values_list("state")) == {
        ("clustered",)
    }


def test_a_loner_is_tried_ever_less_often_and_then_is_unclusterable(turn) -> None:
    loner = photo()
    tried = []
    for minute in range(0, 75, 5):
        if turn(5 if minute else 0).found:
            tried.append(minute)
    assert tried == [0, 5, 15, 35, 60]
    loner.refresh_from_db()
    assert (loner.state, loner.cluster_attempts, loner.next_try_at) == ("unclusterable", 5, None)
    assert loner.reason == (
        "it is the only photo within 75 m and 15 min that no gathering has; 5 make a gathering"
    )


def test_a_loner_that_only_the_first_sweep_saw_has_had_a_try_after_the_lookback(turn) -> None:
    photo()
    turn(600)
    assert states() == {"unclusterable": 1}


def given_up(turn, number: int = 1) -> list[Photo]:
    photos = scene(number)
    turn(0)
    turn(61)
    assert states() == {"unclusterable": number}
    return photos


def test_an_unclusterable_photo_is_reopened_when_a_neighbour_arrives(turn, run_jobs) -> None:
    (old,) = given_up(turn)
    late = photo(now=old.taken_at)
    run_jobs("photos.cluster")
    old.refresh_from_db()
    assert (old.state, old.cluster_attempts, old.reason) == ("new", 0, "")
    assert turn(0).found == 2  # and both are tried again
    before = table()
    for _ in range(10):
        clustering.cluster([late.pk, old.pk])
    assert table() == before
    turn(61)
    assert states() == {"unclusterable": 2}
    clustering.cluster([late.pk, old.pk])
    assert states() == {"unclusterable": 2}


def test_unclusterable_photos_found_a_gathering_with_a_neighbour(turn, run_jobs) -> None:
    photos = given_up(turn, 4)
    photo(now=photos[0].taken_at)
    run_jobs("photos.cluster")
    assert states() == {"clustered": 5}


def test_a_stranger_reopens_nobody(turn, run_jobs) -> None:
    (old,) = given_up(turn)
    photo(away(SQUARE, 200), now=old.taken_at)
    photo(SQUARE)
    run_jobs("photos.cluster")
    old.refresh_from_db()
    assert old.state == "unclusterable"


def test_a_gathering_that_nothing_comes_to_for_an_hour_is_finalized(clock, run_jobs) -> None:
    scene(5)
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


def test_gatherings_are_finalized_in_bounded_batches(clock, settings, run_jobs) -> None:
    settings.PHOTOS_SWEEP_BATCH = 2
    for n in range(3):
        scene(5, away(SQUARE, 1000 * n))
    run_jobs("photos.cluster")
    clock.step(61 * MINUTE)
    assert [swept(GROW).repaired for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("state", ["ACTIVE", "FINALIZED"])
def test_a_gathering_is_repaired_from_what_its_photos_say(run_jobs, state) -> None:
    scene(7, spread=20)
    scene(6, away(SQUARE, 1000))
    run_jobs("photos.cluster")
    first, second = Gathering.objects.order_by("pk")
    Gathering.objects.filter(pk=first.pk).update(photo_count=99, sum_x=1, lat=0, state=state)
    out = Photo.objects.filter(pk=second.photos.first().pk)
    out.update(gathering=None, state="new", next_try_at=events_clock.now())
    run = swept(TRUE)
    assert (run.found, run.repaired) == (2, 2)
    for gathering in Gathering.objects.all():
        true(gathering)
    assert swept(TRUE).found == 0
    assert swept(GATHER).found == 1  # the photo that was taken out is tried again


def test_a_gathering_without_photos_stays_where_it_was(run_jobs) -> None:
    scene(5)
    run_jobs("photos.cluster")
    at = Gathering.objects.values_list("lat", "lon").get()
    Photo.objects.all().delete()
    assert swept(TRUE).repaired == 1
    assert Gathering.objects.values_list("lat", "lon", "photo_count", "radius").get() == (*at, 0, 0)
    assert swept(TRUE).found == 0


def test_each_gathering_has_its_turn(settings, clock, run_jobs) -> None:
    settings.PHOTOS_SWEEP_BATCH = 2
    for n in range(7):
        scene(5, away(SQUARE, 1000 * n))
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
def test_a_photo_cannot_say_two_things(wrong) -> None:
    loner = photo()
    with pytest.raises(IntegrityError), transaction.atomic():
        Photo.objects.filter(pk=loner.pk).update(**wrong)


def test_a_sweep_of_a_converged_state_writes_only_its_own_record(turn, clock, run_jobs) -> None:
    given_up(turn)
    scene(6, away(SQUARE, 900))
    run_jobs("photos.cluster")
    photo(away(SQUARE, 5000))
    turn(0)
    before, events, jobs = table(), Event.objects.count(), Job.objects.count()
    with CaptureQueriesContext(connection) as said:
        runs = sweep([GATHER, GROW, TRUE])
    assert [(run.found, run.repaired, run.outcome) for run in runs] == [(0, 0, "checked")] * 3
    writes = [q["sql"] for q in said if q["sql"].lstrip()[:6] in ("INSERT", "UPDATE", "DELETE")]
    assert len(writes) == 3
    assert all("jobs_sweeprun" in sql for sql in writes), writes
    assert (table(), Event.objects.count(), Job.objects.count()) == (before, events, jobs)


@pytest.mark.parametrize("name", [GATHER, GROW, TRUE])
def test_of_two_sweeps_at_once_one_works_and_the_other_is_skipped(name) -> None:
    """The first stands before a lock of ours, inside its transaction, when the second begins."""
    photo()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE photos_photo, photos_gathering IN ACCESS EXCLUSIVE MODE")
            first = pool.submit(_elsewhere, name)
            wait_until(_stands, what="the first sweep stands before our lock")
            assert swept(name).outcome == "skipped"
        assert first.result(20).outcome == "checked"


def _elsewhere(name: str) -> SweepRun:
    try:
        return swept(name)
    finally:
        connection.close()


def _stands() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks WHERE NOT granted"
            " AND relation IN ('photos_photo'::regclass, 'photos_gathering'::regclass)"
        )
        return cursor.fetchone() is not None
