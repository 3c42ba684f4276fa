"""Staged points that a crash of the database takes away in the middle of the promotion."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.db.query import execute
from tailrace.domains.timeline.imports import decisions, quotas, staging
from tailrace.domains.timeline.imports.decisions import NotNow
from tailrace.domains.timeline.imports.progress import actions_of
from tailrace.domains.timeline.models import Import
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import Killable
from tests.timeline.kit import expected, gpx, now, numbers, rescued, stored, track, upload, visible

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
Run = Callable[[], int]
AFTER_SOME_CHUNKS = 22
"""A statement of the promotion."""


@pytest.fixture
def ann() -> User:
    return person("ann")


def lost_in_promotion(user: User, processes: Killable, kill_at: int = AFTER_SOME_CHUNKS) -> Import:
    """Return an import whose worker was killed while it promoted, and whose staged points went."""
    row = upload(user, gpx(track(1000) + track(5)))
    processes.run("timeline.stage")
    decisions.promote_now(row.pk)
    assert processes.run("timeline.promote", kill_at=kill_at).killed
    execute(f"TRUNCATE {staging.partition(row.pk)}")
    rescued()
    return row


@pytest.mark.parametrize("kill_at", [6, AFTER_SOME_CHUNKS, 45])
def test_they_are_staged_again(
    ann: User, processes: Killable, run_imports: Run, kill_at: int
) -> None:
    first = upload(ann, gpx(track(50)))
    run_imports()
    decisions.promote_now(first.pk)
    run_imports()
    row = lost_in_promotion(ann, processes, kill_at)
    assert visible(ann) == 50
    run_imports()
    if now(row).state == "grace":  # nothing of it was in the timeline: it has its grace again
        decisions.promote_now(row.pk)
        run_imports()
    assert (now(row).state, numbers(row)) == ("completed", (950, 55, 0))
    assert now(row).times_lost == 1
    assert stored(ann) == expected(track(1000))


def test_it_cannot_be_cancelled_halfway(ann: User, processes: Killable, run_imports: Run) -> None:
    row = lost_in_promotion(ann, processes)
    assert 0 < len(stored(ann)) < 1000
    processes.run("timeline.promote")
    assert now(row).state == "queued"
    for _ in range(2):
        assert actions_of(now(row)) == []
        with pytest.raises(NotNow, match="are being added to the timeline"):
            decisions.cancel(row.pk)
        processes.run("timeline.stage")
        assert now(row).state == "grace"
    run_imports()
    assert (now(row).state, numbers(row)) == ("completed", (1000, 5, 0))


@pytest.mark.parametrize("what", ["file gone", "file cut", "operator"])
def test_what_cannot_be_staged_again_is_undone(
    ann: User, processes: Killable, run_imports: Run, import_folder: Path, what: str
) -> None:
    row = lost_in_promotion(ann, processes)
    processes.run("timeline.promote")
    file = import_folder / row.storage_key
    if what == "file gone":
        file.unlink()
        Job.objects.filter(pk=now(row).job_id).update(attempt=11)
    elif what == "file cut":
        file.write_bytes(file.read_bytes()[:9000])
    else:
        run = processes.run("timeline.stage", stop_at=5)
        cancel([Job.objects.get(state="running").pk])
        run.go_on()
    run_imports()
    assert (now(row).state, stored(ann)) == ("undone", [])
    assert now(row).error
    assert quotas.usage_of(ann.pk).points == 0
    assert not file.exists()
