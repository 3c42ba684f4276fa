"""Workers that are killed at points of each step: the result is that of an undisturbed run."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions, staging
from tailrace.domains.timeline.models import Import, Place
from tailrace.domains.timeline.points import geocoding
from tests.kit import wait_until, worker
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import Killable
from tests.timeline.kit import (
    expected,
    files_in,
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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.once,
    pytest.mark.django_db(transaction=True),
]
COUNT = 150_000
POINTS = track(1000)
FILE = gpx([*POINTS, *POINTS[:10], (None, 1.0, 2.0)])
STEPS = ("stage", "promote", "enrich", "undo", "discard")
FEW, MANY = 3, 10
"""How many points of a step are tried."""
Run = Callable[[], int]


@pytest.fixture
def ann() -> User:
    return person("ann")


def up_to(step: str, row: Import, processes: Killable) -> None:
    """Do what comes before this step, undisturbed."""
    if step == "stage":
        return
    processes.run("timeline.stage")
    decisions.promote_now(row.pk)
    for name in ("promote", "enrich"):
        if step == name:
            return
        processes.run(f"timeline.{name}")
    if step == "undo":
        processes.run("timeline.discard")
        decisions.undo(row.pk)


def to_the_end(step: str, row: Import, run_imports: Run) -> None:
    """Do what comes after this step."""
    run_imports()
    if step == "stage":
        assert (now(row).state, now(row).staged) == ("grace", len(POINTS) + 10)
        decisions.promote_now(row.pk)
        run_imports()


def check(step: str, row: Import, folder: Path) -> None:
    """Compare with what an undisturbed run leaves behind."""
    assert staged_tables() == []
    if step == "undo":
        assert (now(row).state, now(row).removed, stored(row.user)) == ("undone", len(POINTS), [])
        assert not Place.objects.filter(origin=row).exists()
        assert files_in(folder) == []
        return
    assert (now(row).state, numbers(row)) == ("completed", (len(POINTS), 10, 1))
    assert stored(row.user) == expected(POINTS)
    assert visible(row.user) == len(POINTS)
    if geocoding.is_available():
        cells = {(int(lat * 100), int(lon * 100)) for _, lat, lon in POINTS}
        assert Place.objects.filter(origin=row).count() == len(cells)


@pytest.mark.parametrize("places", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=pytest.mark.long if step in ("enrich", "undo") else ())
        for step in STEPS
    ],
)
def test_a_worker_killed_at_some_points_of_a_step(
    step: str, places: int, processes: Killable, run_imports: Run, import_folder: Path
) -> None:
    row = upload(person("undisturbed"), FILE)
    up_to(step, row, processes)
    statements = processes.run(f"timeline.{step}").statements
    to_the_end(step, row, run_imports)
    check(step, row, import_folder)
    points = sorted({round(statements * n / places) or 1 for n in range(1, places + 1)})
    assert len(points) == min(statements, places)
    for number in points:
        row = upload(person(f"killed at {number}"), FILE)
        up_to(step, row, processes)
        assert processes.run(f"timeline.{step}", kill_at=number).killed, number
        if step in ("stage", "promote"):  # all or nothing
            assert visible(row.user) == (len(POINTS) if now(row).state == "enriching" else 0)
        rescued()
        to_the_end(step, row, run_imports)
        check(step, row, import_folder)


def test_workers_killed_in_a_statement_while_parsing_and_promoting(
    process_env: dict[str, str], tmp_path: Path, import_folder: Path, run_imports: Run, ann: User
) -> None:
    env = process_env | {"TIMELINE_FOLDER": str(import_folder)}
    row = upload(ann, gpx(track(COUNT)))
    with worker(env, ["timeline.stage"], log=tmp_path / "stage") as parser:
        wait_until(lambda: now(row).staged, what="points are staged")
        parser.signal(signal.SIGKILL)
    assert now(row).state == "parsing"
    assert 0 < now(row).staged == staging.staged_count(row.pk) < COUNT
    rescued()
    run_imports()
    assert (now(row).state, now(row).staged) == ("grace", COUNT)
    decisions.promote_now(row.pk)
    with worker(env, ["timeline.promote"], log=tmp_path / "promote") as promoter:
        wait_until(lambda: now(row).promoted_blocks, what="points are promoted")
        promoter.signal(signal.SIGKILL)
    assert (now(row).state, visible(ann)) == ("promoting", 0)
    rescued()
    run_imports()
    assert (now(row).state, numbers(row)) == ("completed", (COUNT, 0, 0))
    assert stored(ann) == expected(track(COUNT))
