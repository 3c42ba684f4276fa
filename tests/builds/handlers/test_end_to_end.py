"""From a backend's notification log to every side effect, over real HTTP."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from tailrace.domains.builds.models import Binary, Package, ProjectLogEntry, RoleHolder
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.samples.builds.activity import activity
from tailrace.samples.builds.projects import PROJECTS
from tests.servers.source import captured

pytestmark = pytest.mark.django_db(transaction=True)

HANDLERS = (
    "builds.notify_backend",
    "builds.project_log",
    "builds.update_backend_infos",
    "builds.update_released_binaries",
)


@pytest.fixture
def bus(settings, tmp_path: Path) -> Path:
    settings.BUS_BACKENDS = {"file": f"file://{tmp_path / 'bus.ndjson'}"}
    return tmp_path / "bus.ndjson"


def test_each_notification_has_all_its_effects_once(
    backend, poll: Callable, run_jobs: Callable, clock, bus: Path, settings
) -> None:
    settings.OBS_NOPRUNE = False
    key = backend.store(json.loads(captured("30-notificationpayload").body))
    for type, values, _round in islice(activity(0), 120):
        if type == "PACKTRACK":
            values = values | {"payload": key}
        backend.notify(type, values)
    poll()
    for _ in range(3):
        run_jobs(*HANDLERS)
        clock.step(5)
    events = Event.objects.filter(type__startswith="builds.")
    announced = [json.loads(line)["id"] for line in bus.read_text().splitlines()]
    notify_jobs = Job.objects.filter(handler="builds.notify_backend")
    assert sorted(announced) == sorted(notify_jobs.values_list("event_id", flat=True))
    assert len(announced) == len(set(announced)) > 100
    unsettled = Job.objects.filter(handler__in=HANDLERS).exclude(state__in=("completed", "skipped"))
    assert list(unsettled.values_list("handler", "error")) == []
    commits = events.filter(type="builds.commit")
    assert ProjectLogEntry.objects.filter(type="builds.commit").count() == commits.count() > 0
    expected = {(project.name, name) for project in PROJECTS for name in project.packages}
    packages = Package.objects.filter(gone_at=None)
    assert packages.exists()
    assert set(packages.values_list("project", "name")) <= expected
    assert RoleHolder.objects.filter(project="home:alice", role="maintainer", user="alice").exists()
    assert events.filter(type="builds.packtrack").exists()
    assert Binary.objects.current().get().name == "hello"
    assert key not in backend.payloads
