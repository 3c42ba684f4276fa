"""Somebody decides, takes over or goes away while a step is stopped between two statements."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from tailrace.db.query import query
from tailrace.domains.timeline.imports import decisions, staging
from tailrace.domains.timeline.invariants import FilesBelongToImports, PartitionsBelongToImports
from tailrace.domains.timeline.models import Device, Import, Point
from tailrace.domains.timeline.platform.personal_data import delete_some_of
from tests.kit import sessions_that_wait, wait_until
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import Killable, Run
from tests.timeline.kit import (
    expected,
    gpx,
    now,
    numbers,
    rescued,
    staged_tables,
    stored,
    track,
    upload,
    visible,
)

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
POINTS = track(600)
FILE = gpx(POINTS)


def drop_abandoned_partitions() -> None:
    partitions = PartitionsBelongToImports()
    partitions.repair(partitions.find())


@pytest.fixture(params=[2, pytest.param(4, marks=pytest.mark.long)])
def places(request: pytest.FixtureRequest) -> int:
    """How many points of a step are tried: the last is one of them."""
    count: int = request.param
    return count


def ready(user: User, processes: Killable, step: str) -> Import:
    """Return an import whose next step is this one."""
    row = upload(user, FILE)
    if step == "promote":
        processes.run("timeline.stage")
        decisions.promote_now(row.pk)
    return row


def stopped(processes: Killable, step: str, places: int) -> Iterator[tuple[Import, Run]]:
    """Yield imports whose step is stopped, each at another point of it."""
    ready(person("undisturbed"), processes, step)
    statements = processes.run(f"timeline.{step}").statements
    for number in sorted({round(statements * n / places) or 1 for n in range(1, places + 1)}):
        row = ready(person(f"stopped at {number}"), processes, step)
        run = processes.run(f"timeline.{step}", stop_at=number)
        assert run.stopped
        yield row, run


def meanwhile(run: Run, work: Callable[[], Any]) -> str:
    """Do this while the process is stopped, or, if it holds a lock that is needed, when it goes on.
    Return why it was refused."""

    def decide() -> str:
        try:
            work()
        except decisions.NotNow as error:
            return str(error)
        finally:
            connections.close_all()
        return ""

    with ThreadPoolExecutor(1) as pool:
        reason = pool.submit(decide)
        wait_until(lambda: reason.done() or sessions_that_wait())
        run.go_on()
        return reason.result()


def test_a_cancel_at_any_moment_of_parsing_leaves_nothing(
    places: int, processes: Killable, run_imports: Callable[[], int], import_folder: Path
) -> None:
    for row, run in stopped(processes, "stage", places):
        id = row.pk
        assert meanwhile(run, lambda id=id: decisions.cancel(id)) == ""
        run_imports()
        drop_abandoned_partitions()
        run_imports()
        assert (now(row).state, stored(row.user)) == ("cancelled", [])
        assert row.pk not in staged_tables()
        assert not (import_folder / row.storage_key).exists()


def test_a_cancel_while_promoting_is_refused_and_nothing_is_seen_before_the_end(
    places: int, processes: Killable, run_imports: Callable[[], int]
) -> None:
    reasons = set()
    for row, run in stopped(processes, "promote", places):
        assert visible(row.user) == (len(POINTS) if now(row).state == "enriching" else 0)
        id = row.pk
        reasons.add(meanwhile(run, lambda id=id: decisions.cancel(id)))
        run_imports()
        points = [] if now(row).state == "cancelled" else POINTS
        assert stored(row.user) == expected(points)
        assert visible(row.user) == len(points)
    assert decisions.BEING_PROMOTED in reasons


@pytest.mark.parametrize("step", ["stage", "promote"])
def test_a_worker_that_comes_back_after_another_took_over_changes_nothing(
    step: str, processes: Killable, run_imports: Callable[[], int]
) -> None:
    taken_over = 0
    for row, run in stopped(processes, step, 4):
        if not _in_transaction():  # the one that takes over would wait for it
            rescued()
            run_imports()
            taken_over += 1
        run.go_on()
        run_imports()
        if step == "stage":
            assert (now(row).state, staging.staged_count(row.pk)) == ("grace", len(POINTS))
            decisions.promote_now(row.pk)
            run_imports()
        assert (now(row).state, numbers(row)) == ("completed", (len(POINTS), 0, 0))
        assert stored(row.user) == expected(POINTS)
    assert taken_over


def _in_transaction() -> bool:
    query("SELECT pg_stat_clear_snapshot()")
    return bool(
        query(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND state LIKE 'idle in transaction%%' AND pid <> pg_backend_pid()"
        )
    )


def test_one_import_is_promoted_at_a_time(
    processes: Killable, run_imports: Callable[[], int]
) -> None:
    rows = [ready(person(name), processes, "promote") for name in ("ann", "bob")]
    run = processes.run("timeline.promote", stop_at=12)
    assert processes.run("timeline.promote").statements == 0
    assert sorted(now(row).state for row in rows) == ["grace", "promoting"]
    run.go_on()
    run_imports()
    assert [(now(row).state, numbers(row)) for row in rows] == [("completed", (600, 0, 0))] * 2


@pytest.mark.parametrize("step", ["stage", "promote"])
@pytest.mark.parametrize("what", ["account", "device"])
def test_an_account_or_device_that_goes_meanwhile_leaves_nothing(
    step: str,
    what: str,
    places: int,
    processes: Killable,
    run_imports: Callable[[], int],
    import_folder: Path,
) -> None:
    for row, run in stopped(processes, step, places):
        user, device = row.user_id, row.device_id

        def delete(user: int = user, device: int = device) -> None:
            if what == "device":
                Device.objects.get(pk=device).delete()
            while delete_some_of(user):
                pass

        meanwhile(run, delete)
        run_imports()
        drop_abandoned_partitions()
        FilesBelongToImports().repair([row.storage_key])
        run_imports()
        assert not Import.objects.filter(pk=row.pk).exists()
        assert row.pk not in staged_tables()
        assert not (import_folder / row.storage_key).exists()
        if what == "account":
            assert not Point.objects.filter(device=device).exists()
