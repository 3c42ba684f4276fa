"""An import waits while another import of its device has hidden points in the timeline."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from tailrace.db.query import execute
from tailrace.domains.timeline.imports import decisions, staging
from tailrace.domains.timeline.imports.decisions import NotNow
from tailrace.domains.timeline.models import Import
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.subscriptions.sample_domain import person
from tests.timeline.faults.test_lost_points import lost_in_promotion
from tests.timeline.killable import Killable
from tests.timeline.kit import expected, gpx, now, numbers, rescued, stored, track, upload
from tests.timeline.sources.kit import Run, seen
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def ann() -> User:
    return person("ann")


def promoted_in_part(user: User, processes: Killable, state: str) -> Import:
    """Return an import in this state, of which the timeline has some hidden points."""
    row = lost_in_promotion(user, processes)
    if state != "promoting":
        processes.run("timeline.promote")
    if state == "parsing":
        assert processes.run("timeline.stage", kill_at=9).killed
    if state == "grace":
        processes.run("timeline.stage")
    assert now(row).state == state
    assert 0 < len(stored(user)) < 1000
    return row


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("promoting", "completed"),
        ("queued", "undone"),
        ("parsing", "completed"),
        pytest.param("grace", "completed", marks=pytest.mark.long),
        pytest.param("promoting", "undone", marks=pytest.mark.long),
    ],
)
def test_it_waits_for_one_that_is_promoted_in_part(
    ann: User, processes: Killable, run_imports: Run, import_folder: Path, state: str, end: str
) -> None:
    row = upload(ann, gpx(track(20)))
    processes.run("timeline.stage")
    half = promoted_in_part(ann, processes, state)
    later = Now() + timedelta(hours=1)
    Job.objects.filter(pk=now(half).job_id).update(due_at=later)  # nobody works at it
    decisions.promote_now(row.pk)
    processes.run("timeline.promote")
    assert (now(row).state, seen(ann)) == ("grace", [])
    reason = f"mport {half.pk} of the same device is promoted in part"
    assert reason in Visitor(ann).text(f"/timeline/imports/{row.pk}")
    job = now(row).job_id
    assert job
    assert any(reason in span.why for span in explain(job).spans)
    if end == "undone":
        (import_folder / half.storage_key).unlink()
        Job.objects.filter(pk=now(half).job_id).update(attempt=11)
    for _ in range(4):
        rescued()
        run_imports()
    assert (now(half).state, now(row).state) == (end, "completed")
    new = 20 if end == "undone" else 0
    assert numbers(row) == (new, 20 - new, 0)
    assert stored(ann) == seen(ann) == expected(track(20 if new else 1000))


def test_staged_points_lost_twice_do_not_make_it_cancellable(
    ann: User, processes: Killable, run_imports: Run, import_folder: Path
) -> None:
    half = promoted_in_part(ann, processes, "grace")
    execute(f"TRUNCATE {staging.partition(half.pk)}")
    processes.run("timeline.promote")
    assert (now(half).state, now(half).times_lost) == ("queued", 2)
    with pytest.raises(NotNow, match="are being added to the timeline"):
        decisions.cancel(half.pk)
    (import_folder / half.storage_key).unlink()
    Job.objects.filter(pk=now(half).job_id).update(attempt=11)
    run_imports()
    assert (now(half).state, stored(ann)) == ("undone", [])
