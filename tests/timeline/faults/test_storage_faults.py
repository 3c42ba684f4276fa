"""Files that change, are cut or go while they are read, and a storage that is away for a while."""

import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.unpack import Limits, members
from tailrace.domains.timeline.models import Import
from tailrace.jobs.models import Job
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import Killable
from tests.timeline.kit import gpx, now, numbers, rescued, track, upload, visible
from tests.timeline.test_unpack import GPX, gzip, zipped

pytestmark = pytest.mark.django_db
Run = Callable[[], int]
POINTS = track(10_000)


@pytest.fixture
def ann() -> User:
    return person("ann")


def retried(row: Import, run_imports: Run) -> None:
    assert now(row).state == "parsing"
    assert Job.objects.get(pk=now(row).job_id).state == "pending"
    rescued()
    run_imports()


def test_a_storage_that_is_away_is_waited_for(ann: User, run_imports: Run, import_folder) -> None:
    row = upload(ann, gpx(POINTS))
    away = import_folder.rename(import_folder.with_name("away"))
    run_imports()
    away.rename(import_folder)
    retried(row, run_imports)
    assert (now(row).state, now(row).staged) == ("grace", len(POINTS))


def test_a_file_that_cannot_be_read_now_is_read_later(
    ann: User, run_imports: Run, import_folder: Path
) -> None:
    row = upload(ann, gpx(POINTS))
    file = import_folder / row.storage_key
    good = file.rename(file.with_suffix(".good"))
    file.symlink_to("/proc/self/mem")  # EIO at its beginning
    run_imports()
    good.replace(file)
    retried(row, run_imports)
    assert (now(row).state, now(row).staged) == ("grace", len(POINTS))


def test_a_file_that_is_gone_for_long_is_a_failure(ann: User, run_imports, import_folder) -> None:
    row = upload(ann, gpx(POINTS))
    (import_folder / row.storage_key).unlink()
    run_imports()
    assert now(row).state == "parsing"
    Job.objects.filter(pk=now(row).job_id).update(attempt=11)
    rescued()
    run_imports()
    assert (now(row).state, now(row).error) == ("failed", "The file no longer exists.")


class Failing(BytesIO):
    """A file of a storage that fails in the middle."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 200:
            raise OSError(5, "Input/output error")
        return super().read(min(100, size or 0))


@pytest.mark.parametrize("packed", [gzip.compress(GPX), zipped(track=GPX)], ids=["gzip", "zip"])
def test_a_storage_that_fails_is_no_damage_of_an_archive(packed: bytes) -> None:
    def read() -> Iterator[bytes]:
        for member in members(Failing(packed), Limits()):
            while piece := member.file.read(100):
                yield piece

    with pytest.raises(OSError, match="Input/output error"):
        list(read())


def test_an_archive_with_wrong_positions_is_damaged() -> None:
    packed = bytearray(zipped(track=GPX))
    at = packed.index(b"PK\x01\x02") + 42
    packed[at : at + 4] = b"\xf0\xff\xff\x7f"
    with pytest.raises(FileError):
        list(members(BytesIO(bytes(packed)), Limits()))


def changed(file: Path) -> None:
    content = file.read_bytes()
    os.utime(file, (1, 1))
    file.write_bytes(content.replace(b"2026-03-01T09", b"2025-03-01T09"))


def replaced(file: Path) -> None:
    file.with_suffix(".new").write_bytes(gpx(track(3)))
    file.with_suffix(".new").rename(file)


def longer(file: Path) -> None:
    with file.open("ab") as end:
        end.write(b"<!-- more -->")


def cut(file: Path) -> None:
    os.truncate(file, 100_000)


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [changed, replaced, longer, cut, Path.unlink])
def test_a_file_that_changes_while_it_is_read(
    ann: User, processes: Killable, run_imports: Run, import_folder: Path, change
) -> None:
    row = upload(ann, gpx(POINTS))
    run = processes.run("timeline.stage", stop_at=16)
    assert 0 < now(row).bytes_read < row.size
    change(import_folder / row.storage_key)
    run.go_on()
    row = now(row)
    if change is Path.unlink:  # it was open: all of it was read
        assert (row.state, row.staged) == ("grace", len(POINTS))
    else:
        assert (row.state, row.staged > 200) == ("needs_decision", True)
        assert "was changed" in row.error or "ends in the middle" in row.error
    decisions.promote_now(row.pk)
    run_imports()
    assert (now(row).state, sum(numbers(row))) == ("completed", row.staged)
    assert visible(ann) == row.staged
