"""Many workers at once make one gathering with an exact centroid, and join no finalized one."""

import os
import random
import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from tailrace.db.query import query
from tailrace.domains.photos.clustering.cluster_photos import cluster_photos
from tailrace.domains.photos.clustering.sweeping.inactive import (
    finalize_inactive_gatherings,
    find_inactive_gatherings,
)
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Job
from tests.kit import (
    PATIENCE,
    at_once,
    claimed,
    empty_broker,
    held,
    run_and_settle,
    sessions_that_wait,
    wait_until,
    worker,
)
from tests.photos.kit import (
    SQUARE,
    assert_consistent,
    away,
    count_by_state,
    upload_photo,
    upload_photos,
)

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "photos.cluster"


def test_20_workers_make_one_gathering_of_100_photos() -> None:
    """Each worker claims what it can, one photo at a time, across a corner of four cells."""
    upload_photos(100, (52.52, 13.40), spread=30)

    def work(number: int) -> int:
        done = 0
        while jobs := claimed(QUEUE, 1):
            assert set(run_and_settle(jobs).values()) == {"completed"}
            done += 1
        return done

    assert sum(at_once(20, work)) == 100
    gathering = Gathering.objects.get()
    assert_consistent(gathering)
    assert gathering.photo_count == 100


def test_20_workers_on_many_places_agree() -> None:
    """Batches of 1 to 7 photos of places that share cells, each photo twice."""
    photos = [
        photo for n in range(8) for photo in upload_photos(12, away(SQUARE, 300 * n), spread=10)
    ]
    chance = random.Random(4)
    ids = [photo.pk for photo in photos] * 2
    chance.shuffle(ids)
    batches = [ids[n::40] for n in range(40)]

    def work(number: int) -> None:
        for batch in batches[number::20]:
            size = 1 + number % 7
            for start in range(0, len(batch), size):
                cluster_photos(batch[start : start + size])

    at_once(20, work)
    assert count_by_state() == {"clustered": 96}
    assert list(Gathering.objects.values_list("photo_count", flat=True)) == [12] * 8
    for gathering in Gathering.objects.all():
        assert_consistent(gathering)


def race(turns: int) -> tuple[int, int]:
    """Let a joining and a finalizing connection race; return how often each of them won."""
    line = threading.Barrier(2, timeout=300)
    ended: list[int] = []

    def work(number: int) -> list[bool]:
        try:
            return [_turn(turn, line, ended) for turn in range(turns)] if number == 0 else _end()
        except BaseException:
            line.abort()
            raise

    def _end() -> list[bool]:
        for _ in range(turns):
            line.wait()
            with transaction.atomic():
                idle = find_inactive_gatherings(200)
                ended.append(finalize_inactive_gatherings(idle))
            line.wait()
        return []

    won, _ = at_once(2, work, 300)
    return won.count(True), won.count(False)


def _turn(turn: int, line: threading.Barrier, ended: list[int]) -> bool:
    """Let a photo join an idle gathering; return whether it came before the end."""
    here = away(SQUARE, 1000 * turn, 0 if turn % 2 else 90)
    with transaction.atomic():
        cluster_photos([photo.pk for photo in upload_photos(5, here)])
        late = upload_photo(here)
        Gathering.objects.active().update(joined_at=F("joined_at") - timedelta(minutes=61))
    line.wait()
    cluster_photos([late.pk])
    line.wait()
    gathering = Gathering.objects.latest("pk")
    late.refresh_from_db()
    assert_consistent(gathering)
    if ended[turn]:
        assert (gathering.state, gathering.photo_count) == ("FINALIZED", 5)
        assert late.gathering_id is None
        late.delete()
        return False
    assert (gathering.state, gathering.photo_count) == ("ACTIVE", 6)
    assert late.gathering_id == gathering.pk
    Gathering.objects.active().update(state="FINALIZED")
    return True


RACES = int(os.environ.get("RACES", "0"))
"""`make races` holds a thousand."""


@pytest.mark.parametrize("races", [RACES or 15, pytest.param(100, marks=pytest.mark.long)])
def test_no_race_puts_a_photo_into_a_finalized_gathering(races: int) -> None:
    joined, finalized = race(races)
    assert joined + finalized == races
    assert min(joined, finalized) > 0 or races < 1000, "one side won every race, so it was no race"


def test_a_join_waits_for_finalizing_and_then_gives_up() -> None:
    """The order that a race only hits by chance: the finalizer holds the row, the photo comes."""
    cluster_photos([photo.pk for photo in upload_photos(5)])
    Gathering.objects.update(joined_at="2020-01-01T00:00Z")
    late = upload_photo()
    held = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                assert finalize_inactive_gatherings(find_inactive_gatherings(200))
                held.set()
                wait_until(sessions_that_wait, what="the joining photo waits for the row")
        else:
            assert held.wait(PATIENCE), "the finalizer holds the row"
            cluster_photos([late.pk])

    at_once(2, work)
    late.refresh_from_db()
    assert late.gathering_id is None
    assert Gathering.objects.get().photo_count == 5


def test_finalizing_skips_a_gathering_being_joined() -> None:
    cluster_photos([photo.pk for photo in upload_photos(5)])
    Gathering.objects.update(joined_at="2020-01-01T00:00Z")
    late = upload_photo()
    with transaction.atomic():
        cluster_photos([late.pk])
        (ended,) = at_once(1, lambda _: len(find_inactive_gatherings(200)))
        assert ended == 0
    assert_consistent(Gathering.objects.get())


# --- real processes ------------------------------------------------------------------------------


def ticked() -> bool:
    tick.tick()
    return True


def done() -> bool:
    return not Job.objects.filter(handler=QUEUE, state__in=["pending", "running"]).exists()


@pytest.mark.slow
def test_a_worker_killed_before_the_fifth_photo(process_env, tmp_path) -> None:
    empty_broker()
    with worker(process_env, [QUEUE], log=tmp_path / "first.log") as first:
        for _ in range(4):
            upload_photo()
        wait_until(done, what="four photos are tried")
        assert not Gathering.objects.exists()
        first.kill()
    with worker(process_env, [QUEUE], log=tmp_path / "second.log"):
        upload_photo()
        wait_until(lambda: ticked() and done(), what="the fifth is tried")
    gathering = Gathering.objects.get()
    assert_consistent(gathering)
    assert gathering.photo_count == 5


@pytest.mark.slow
def test_worker_processes_make_one_gathering_of_100_photos(process_env, tmp_path) -> None:
    empty_broker()
    log = tmp_path / "four.log"
    with worker(process_env, [QUEUE], log=log, concurrency=4):
        for _ in range(25):
            upload_photos(4, spread=20)
        wait_until(done, 60, what="all are tried")
    gathering = Gathering.objects.get()
    assert_consistent(gathering)
    assert gathering.photo_count == 100


@pytest.mark.slow
def test_one_sweep_repairs_a_flushed_broker_and_lost_jobs(process_env, tmp_path) -> None:
    upload_photos(9)
    Job.objects.all().delete()
    empty_broker()
    with worker(process_env, [QUEUE], log=tmp_path / "after.log"):
        sweep(["photos.photos_gather"])
        # The queue's lost wake-up is sent again by the tick, as beat has it done.
        wait_until(
            lambda: ticked() and count_by_state() == {"clustered": 9}, 30, what="all is assigned"
        )
    assert_consistent(Gathering.objects.get())


def test_a_photo_that_is_being_deleted_gets_no_place() -> None:
    ana = User.objects.create_user("ana")
    placed = upload_photo(SQUARE)
    unplaced = Photo.objects.create(
        user=ana, state="unplaced", storage_key="test/a", taken_at=placed.taken_at
    )
    Photo.objects.update(user=ana)
    is_locked = threading.Event()

    def work(number: int) -> list[int]:
        if number == 0:
            is_locked.wait(PATIENCE)
            return delete_photos([placed.pk, unplaced.pk], ana.pk)
        with held("SELECT 1 FROM tailrace_photos_photo WHERE id = %s FOR UPDATE", placed.pk):
            is_locked.set()
            wait_until(lambda: sessions_that_wait() > 0)
            rows = query("SELECT id FROM tailrace_photos_photo FOR UPDATE SKIP LOCKED")
        return [id for (id,) in rows]

    deleted, free = at_once(2, work)
    assert deleted == [placed.pk, unplaced.pk]
    assert free == []
