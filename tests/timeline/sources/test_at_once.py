"""Undos, promotions and the phone change the same points at the same time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connections, transaction

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.models import Import, Point
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Job
from tests.kit import sessions_that_wait, wait_until
from tests.subscriptions.sample_domain import person
from tests.timeline.faults.test_interrupted import meanwhile
from tests.timeline.killable import Killable
from tests.timeline.kit import expected, gpx, now, numbers, rescued, stored, track, upload
from tests.timeline.sources.kit import Run, imported, phone_sends, seen

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
T = TypeVar("T")
POINTS = track(400)
FEW, MANY = 3, 12
moments = pytest.mark.parametrize("moments", [FEW, pytest.param(MANY, marks=pytest.mark.long)])


def undoing(name: str, run_imports: Run) -> Import:
    row = imported(person(name), POINTS, run_imports)
    decisions.undo(row.pk)
    return row


def statements(processes: Killable, step: str, moments: int) -> list[int]:
    """Return some statements of a step, which an undisturbed run has executed."""
    count = processes.run(f"timeline.{step}").statements
    return sorted({round(count * n / (moments + 1)) for n in range(1, moments + 1)})


@moments
def test_points_that_the_phone_sends_at_any_moment_of_an_undo_stay(
    moments: int, processes: Killable, run_imports: Run
) -> None:
    undoing("undisturbed", run_imports)
    for number in statements(processes, "undo", moments):
        row = undoing(f"stopped at {number}", run_imports)
        run = processes.run("timeline.undo", stop_at=number)
        assert run.stopped
        sent = POINTS[::40]
        meanwhile(run, lambda user=row.user, sent=sent: phone_sends(user, sent))
        rescued()
        run_imports()
        assert now(row).state == "undone"
        assert stored(row.user) == seen(row.user) == expected(sent)


@moments
def test_an_undo_at_any_moment_of_another_promotion_leaves_the_points_of_that_import(
    moments: int, processes: Killable, run_imports: Run
) -> None:
    def ready(name: str) -> tuple[Import, Import]:
        first = imported(person(name), POINTS, run_imports)
        second = upload(first.user, gpx(track(800, first=200)))
        processes.run("timeline.stage")
        decisions.promote_now(second.pk)
        return first, second

    def undo_now(first: Import) -> None:
        decisions.undo(first.pk)
        while drain("timeline.undo"):
            pass

    ready("undisturbed")
    for number in statements(processes, "promote", moments):
        first, second = ready(f"stopped at {number}")
        run = processes.run("timeline.promote", stop_at=number)
        assert run.stopped
        meanwhile(run, lambda first=first: undo_now(first))
        for _ in range(2):
            rescued()
            run_imports()
        assert [now(row).state for row in (first, second)] == ["undone", "completed"]
        assert stored(first.user) == seen(first.user) == expected(track(800, first=200))
        assert numbers(second) == (800, 0, 0)


def in_a_session(pool: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
    """Do the work in a thread, with a connection of its own."""

    def call() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return pool.submit(call)


def test_a_promotion_and_the_phone_do_not_wait_for_each_other(run_imports: Run) -> None:
    """The file has the points in another order than the phone sends them."""
    ann, points = person("ann"), track(10)
    row = upload(ann, gpx(points[::-1]))
    run_imports()
    decisions.promote_now(row.pk)
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():  # both meet this point halfway
            at, lat, lon = points[5]
            Point.objects.create(
                device_id=row.device_id, recorded_at=at, lat=round(lat * 1e7), lon=round(lon * 1e7)
            )
            promotion = in_a_session(pool, lambda: drain("timeline.promote"))
            wait_until(lambda: sessions_that_wait() == 1)
            phone = in_a_session(pool, lambda: phone_sends(ann, points))
            wait_until(lambda: sessions_that_wait() == 2)
            transaction.set_rollback(True)
        assert promotion.result()
        phone.result()
    run_imports()
    assert Job.objects.get(handler="timeline.promote").attempt == 1
    assert (now(row).state, seen(ann)) == ("completed", expected(points))


def test_an_undo_deletes_no_point_that_the_phone_sends_meanwhile(run_imports: Run) -> None:
    row = undoing("ann", run_imports)
    sent = POINTS[1:4]
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():  # the undo has read the sources, and waits for this point
            points = Point.objects.filter(device=row.device_id).order_by("recorded_at")
            assert points.select_for_update().first()
            undo = in_a_session(pool, lambda: drain("timeline.undo"))
            wait_until(lambda: sessions_that_wait() == 1)
            phone = in_a_session(pool, lambda: phone_sends(row.user, sent))
            wait_until(lambda: sessions_that_wait() == 2 or phone.done())
        assert undo.result()
        assert phone.result() == 3
    assert stored(row.user) == seen(row.user) == expected(sent)
