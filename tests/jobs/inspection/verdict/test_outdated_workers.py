"""A worker of other code than is on the disk is a cause after ten minutes, and never before: not
while a deploy replaces one process after the other, whichever comes first."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.test import Client

from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.queues.other_code import machine_started_at
from tailrace.jobs.testing.clock import Clock
from tests.jobs import operators

pytestmark = pytest.mark.django_db


@pytest.fixture
def disk(settings: Any, tmp_path: Path) -> Path:
    """A project of one file, which is there since now."""
    settings.BASE_DIR = tmp_path
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "lamp.py"
    path.write_text("lamp = 'lit'\n")
    return path


@pytest.fixture
def old_worker(disk: Path, system: None, clock: Clock) -> Pulse:
    """A worker of other code, which has run for an hour, beside one of the same code."""
    started = clock.now() - timedelta(hours=1)
    return operators.worker("old@test", pid=2, code="0123456789ab", started_at=started.isoformat())


def later(clock: Clock, seconds: float) -> list[str]:
    """Return the words of the verdict's causes after this time; everybody is alive."""
    clock.step(seconds)
    Pulse.objects.update(at=clock.now())
    return [cause.words for cause in verdict.work_out().causes]


def test_it_is_a_cause_once_the_files_are_there_for_ten_minutes(
    old_worker: Pulse, clock: Clock
) -> None:
    assert later(clock, 0) == later(clock, 500) == []
    assert verdict.current(-1).status == "healthy"
    [words] = later(clock, 101)
    assert words.startswith("1 worker runs other code than is on this machine's disk, since ")
    assert words.endswith(" min ago): old@test host:2.")
    assert verdict.work_out().codes == ["worker_outdated"]


def test_a_worker_that_was_replaced_first_has_ten_minutes_too(
    disk: Path, system: None, clock: Clock
) -> None:
    assert later(clock, 5000) == []
    operators.worker("new@test", pid=2, code="0123456789ab")
    assert later(clock, 0) == later(clock, 500) == []
    assert len(later(clock, 101)) == 1


def test_restarted_workers_are_no_cause(old_worker: Pulse, clock: Clock) -> None:
    assert len(later(clock, 700)) == 1
    old_worker.delete()
    operators.worker("old@test", pid=3)
    assert later(clock, 0) == []


def test_a_worker_that_does_not_tell_its_code_is_no_cause(old_worker: Pulse, clock: Clock) -> None:
    Pulse.objects.filter(pk=old_worker.pk).update(facts={})
    assert later(clock, 5000) == []


def test_the_workers_are_named_up_to_a_number(old_worker: Pulse, clock: Clock) -> None:
    for pid in range(3, 10):
        operators.worker("old@test", pid=pid, code="0123456789ab")
    [words] = later(clock, 700)
    assert words.startswith("8 workers run other code")
    assert words.endswith("old@test host:6 and 3 more.")


def test_ready_is_degraded_and_serves(old_worker: Pulse, clock: Clock) -> None:
    later(clock, 700)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")


def test_the_overview_leads_to_the_workers(old_worker: Pulse, clock: Clock) -> None:
    later(clock, 700)
    page = operators.client("ada").get("/").content.decode()
    assert "1 worker runs other code" in page
    assert 'href="/overview/workers">Workers</a>' in page


def test_the_machine_was_started_before_this_process() -> None:
    assert machine_started_at().timestamp() <= psutil.Process().create_time()
