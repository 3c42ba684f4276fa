"""Many workers at once: one gathering, the exact centroid, and nothing enters a finalized one."""

import os
import random
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F

from domains.photos import clustering, sweeping
from domains.photos.models import Gathering
from jobs import tick
from jobs.models import Job
from jobs.sweep import sweep
from tests.kit import at_once, claimed, empty_broker, run_and_settle, wait_until, worker
from tests.photos.stage import SQUARE, away, photo, scene, states, true

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "photos.cluster"


def test_20_workers_and_100_photos_of_one_scene_make_one_gathering() -> None:
    """Each worker claims what it can, one photo at a time, across a corner of four cells."""
    scene(100, (52.52, 13.40), spread=30)

    def work(number: int) -> int:
        done = 0
        while jobs := claimed(QUEUE, 1):
            assert set(run_and_settle(jobs).values()) == {"completed"}
            done += 1
        return done

    assert sum(at_once(20, work)) == 100
    gathering = Gathering.objects.get()
    true(gathering)
    assert gathering.photo_count == 100


def test_20_workers_on_many_scenes_in_any_order_agree() -> None:
    """Batches of 1 to 7 photos of scenes that share cells; twice each, and the state is true."""
    photos = [one for n in range(8) for one in scene(12, away(SQUARE, 300 * n), spread=10)]
    chance = random.Random(4)
    ids = [one.pk for one in photos] * 2
    chance.shuffle(ids)
    batches = [ids[n::40] for n in range(40)]

    def work(number: int) -> None:
        for batch in batches[number::20]:
            size = 1 + number % 7
            for start in range(0, len(batch), size):
                clustering.cluster(batch[start : start + size])

    at_once(20, work)
    assert states() == {"clustered": 96}
    assert list(Gathering.objects.values_list("photo_count", flat=True)) == [12] * 8
    for gathering in Gathering.objects.all():
        true(gathering)


def race(turns: int) -> tuple[int, int]:
    """Let a joining and a finalizing connection race; return how often each of them won."""
    line = threading.Barrier(2, timeout=30)
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
                idle = sweeping.find_inactive_gatherings()
                ended.append(sweeping.finalize_inactive_gatherings(idle))
            line.wait()
        return []

    won, _ = at_once(2, work, 300)
    return won.count(True), won.count(False)


def _turn(turn: int, line: threading.Barrier, ended: list[int]) -> bool:
    """Set a photo on its way to an idle gathering; say whether it came before the end."""
    here = away(SQUARE, 1000 * turn, 0 if turn % 2 else 90)
    with transaction.atomic():
        clustering.cluster([one.pk for one in scene(5, here)])
        late = photo(here)
        Gathering.objects.active().update(joined_at=F("joined_at") - timedelta(minutes=61))
    line.wait()
    clustering.cluster([late.pk])
    line.wait()
    gathering = Gathering.objects.latest("pk")
    late.refresh_from_db()
    true(gathering)
    if ended[turn]:
        assert (gathering.state, gathering.photo_count) == ("FINALIZED", 5)
        assert late.gathering_id is None
        late.delete()
        return False
    assert (gathering.state, gathering.photo_count) == ("ACTIVE", 6)
    assert late.gathering_id == gathering.pk
    Gathering.objects.active().update(state="FINALIZED")
    return True


RACES = int(os.environ.get("RACES", "100"))
"""`make races` holds a thousand."""


def test_no_photo_enters_a_finalized_gathering_however_they_race() -> None:
    joined, finalized = race(RACES)
    assert joined + finalized == RACES
    assert min(joined, finalized) > 0 or RACES < 1000, "one side won every race: that was none"


def test_a_join_waits_for_the_end_that_came_first_and_then_does_not_join() -> None:
    """The order that a race only hits by chance: the finalizer holds the row, the photo comes."""
    clustering.cluster([one.pk for one in scene(5)])
    Gathering.objects.update(joined_at="2020-01-01T00:00Z")
    late = photo()
    held = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                assert sweeping.finalize_inactive_gatherings(sweeping.find_inactive_gatherings())
                held.set()
                wait_until(_somebody_waits, what="the joining photo waits for the row")
        else:
            assert held.wait(20), "the finalizer holds the row"
            clustering.cluster([late.pk])

    at_once(2, work)
    late.refresh_from_db()
    assert late.gathering_id is None
    assert Gathering.objects.get().photo_count == 5


def test_an_end_leaves_a_gathering_that_a_photo_is_joining() -> None:
    clustering.cluster([one.pk for one in scene(5)])
    Gathering.objects.update(joined_at="2020-01-01T00:00Z")
    late = photo()
    with transaction.atomic():
        clustering.cluster([late.pk])
        (ended,) = at_once(1, lambda _: len(sweeping.find_inactive_gatherings()))
        assert ended == 0
    true(Gathering.objects.get())


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


# --- real processes ------------------------------------------------------------------------------


def ticked() -> bool:
    tick.tick()
    return True


def done() -> bool:
    return not Job.objects.filter(handler=QUEUE, state__in=["pending", "running"]).exists()


@pytest.mark.slow
@pytest.mark.broker
def test_a_worker_killed_between_the_fourth_and_the_fifth_photo(process_env, tmp_path) -> None:
    empty_broker()
    with worker(process_env, [QUEUE], log=tmp_path / "first.log") as first:
        for _ in range(4):
            photo()
        wait_until(done, what="four photos are tried")
        assert not Gathering.objects.exists()
        first.kill()
    with worker(process_env, [QUEUE], log=tmp_path / "second.log"):
        photo()
        wait_until(lambda: ticked() and done(), what="the fifth is tried")
    gathering = Gathering.objects.get()
    true(gathering)
    assert gathering.photo_count == 5


@pytest.mark.slow
@pytest.mark.broker
def test_worker_processes_make_one_gathering_of_100_photos(process_env, tmp_path) -> None:
    empty_broker()
    log = tmp_path / "four.log"
    with worker(process_env, [QUEUE], log=log, concurrency=4):
        for _ in range(25):
            scene(4, spread=20)
        wait_until(done, 60, what="all are tried")
    gathering = Gathering.objects.get()
    true(gathering)
    assert gathering.photo_count == 100


@pytest.mark.slow
@pytest.mark.broker
def test_one_sweep_after_the_broker_was_flushed_and_the_jobs_deleted(process_env, tmp_path) -> None:
    scene(9)
    Job.objects.all().delete()
    empty_broker()
    with worker(process_env, [QUEUE], log=tmp_path / "after.log"):
        sweep(["photos.photos_gather"])
        # The queue's lost wake-up is sent again by the tick, as beat has it done.
        wait_until(lambda: ticked() and states() == {"clustered": 9}, 30, what="all is assigned")
    true(Gathering.objects.get())
