"""What is lost of an import is found and repaired: jobs, staged points, files, uploads."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.db.query import execute
from tailrace.domains.timeline.imports import decisions, staging
from tailrace.domains.timeline.invariants import (
    CancelledJobsEndImports,
    FilesBelongToImports,
    FilesExpire,
    HistoryEnds,
    ImportsHaveTheirJob,
    PartitionsBelongToImports,
    UploadsEnd,
)
from tailrace.domains.timeline.models import Device, Import
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tests.kit import claimed, run_and_settle
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import (
    expected,
    gpx,
    now,
    numbers,
    staged_tables,
    stored,
    track,
    upload,
    visible,
)
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
Run = Callable[[], int]


@pytest.fixture
def ann() -> User:
    return person("ann")


def lose_staged_points(row: Import) -> None:
    """Empty the partition, as a crash of the database does with an UNLOGGED table."""
    execute(f"TRUNCATE {staging.partition(row.pk)}")


def sweep(invariant) -> int:
    """Return how many violations were repaired; afterwards there are none."""
    violations = list(invariant.find())
    repaired = invariant.repair(violations) if violations else 0
    return repaired


def test_staged_points_lost_in_the_grace_are_staged_again(ann, run_imports: Run, clock) -> None:
    row = upload(ann, gpx([*track(30), (None, 1.0, 2.0)]))
    run_imports()
    lose_staged_points(row)
    clock.step(301)
    run_imports()
    row = now(row)
    assert (row.state, row.times_lost, numbers(row)) == ("completed", 1, (30, 0, 1))
    assert stored(ann) == expected(track(30))


def test_a_worker_that_lost_its_import_changes_nothing(ann, run_imports) -> None:
    row = upload(ann, gpx(track(100)))
    [zombie] = claimed("timeline.stage")
    Job.objects.filter(pk=zombie.id).update(state="pending")
    run_imports()
    assert now(row).state == "grace"
    decisions.promote_now(row.pk)
    assert run_and_settle([zombie]) == {}
    run_imports()
    assert (now(row).state, numbers(row)) == ("completed", (100, 0, 0))


def test_an_import_without_a_job_gets_one(ann, run_imports: Run, clock) -> None:
    row = upload(ann, gpx(track(5)))
    Job.objects.filter(pk=now(row).job_id).update(state="failed", finished_at=clock.now())
    assert sweep(ImportsHaveTheirJob()) == 0, "it has ended just now"
    clock.step(700)
    assert sweep(ImportsHaveTheirJob()) == 1
    assert sweep(ImportsHaveTheirJob()) == 0
    run_imports()
    assert now(row).state == "grace"


@pytest.mark.parametrize("state", ["queued", "grace"])
def test_an_operator_who_cancels_the_job_cancels_the_import(
    ann, run_imports: Run, clock, import_folder, state: str
) -> None:
    row, other = upload(ann, gpx(track(5))), upload(ann, gpx(track(5, first=9)))
    if state == "grace":
        run_imports()
    assert now(row).state == state
    assert sweep(CancelledJobsEndImports()) == 0
    cancel([now(row).job_id])
    assert sweep(CancelledJobsEndImports()) == 1
    assert sweep(CancelledJobsEndImports()) == 0
    run_imports()
    assert (now(row).state, now(row).error) == ("cancelled", "An operator cancelled the import.")
    assert "An operator cancelled the import." in Visitor(ann).text(f"/timeline/imports/{row.pk}")
    clock.step(700)
    assert sweep(ImportsHaveTheirJob()) == 0
    run_imports()
    assert (now(row).state, now(other).state, visible(ann)) == ("cancelled", "completed", 5)
    assert len([path for path in import_folder.rglob("*") if path.is_file()]) == 1


def test_an_operator_does_not_end_a_promotion_in_the_middle(ann, run_imports: Run, clock) -> None:
    row = upload(ann, gpx(track(5)))
    run_imports()
    Import.objects.filter(pk=row.pk).update(state="promoting", promotion_began_at=clock.now())
    cancel([now(row).job_id])
    assert sweep(CancelledJobsEndImports()) == 0
    clock.step(700)
    assert sweep(ImportsHaveTheirJob()) == 1
    run_imports()
    assert (now(row).state, visible(ann)) == ("completed", 5)


def test_partitions_and_files_without_an_import_go(ann, run_imports, clock, import_folder) -> None:
    row = upload(ann, gpx(track(5)))
    run_imports()
    assert sweep(PartitionsBelongToImports()) == sweep(FilesBelongToImports()) == 0
    clock.step(7 * 3600)
    assert sweep(FilesBelongToImports()) == 0, "it has one"
    Import.objects.filter(pk=row.pk).delete()
    assert sweep(PartitionsBelongToImports()) == 1
    assert sweep(FilesBelongToImports()) == 1
    run_imports()
    assert staged_tables() == []
    assert [path for path in import_folder.rglob("*") if path.is_file()] == []


def test_an_upload_that_never_ended_is_deleted(ann, run_imports, clock, import_folder) -> None:
    device = Device.objects.create(user=ann, name="default")
    key = "imports/ab/abcdef"
    Import.objects.create(user=ann, device=device, file_name="a", storage_key=key, size=3)
    (import_folder / "imports" / "ab").mkdir(parents=True)
    (import_folder / key).write_bytes(b"cut")
    assert sweep(UploadsEnd()) == 0
    clock.step(7 * 3600)
    assert sweep(UploadsEnd()) == 1
    run_imports()
    assert not Import.objects.exists()
    assert not (Path(import_folder) / key).exists()


def test_files_and_old_history_expire(ann, run_imports, clock, settings) -> None:
    done, gone = upload(ann, gpx(track(5))), upload(ann, b"nothing")
    run_imports()
    decisions.promote_now(done.pk)
    run_imports()
    assert (now(done).state, now(gone).state) == ("completed", "failed")
    assert now(done).storage_key
    assert sweep(FilesExpire()) == 0
    clock.step(86_400 + 60)
    assert sweep(FilesExpire()) == 1
    run_imports()
    assert not now(done).storage_key
    clock.step(366 * 86_400)
    assert sweep(HistoryEnds()) == 1
    assert list(Import.objects.all()) == [done]
    assert visible(ann) == 5
