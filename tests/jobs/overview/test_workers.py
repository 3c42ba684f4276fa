"""The page of the workers."""

import re

import pytest
from django.test import Client

from tailrace.jobs.engine.maintenance.workers.memory_minutes import MemoryMinutes
from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection.verdict.cause import worker_command
from tests.jobs import operators
from tests.kit import ROOT

pytestmark = pytest.mark.django_db
PAGE = "/overview/workers"


@pytest.fixture
def ada() -> Client:
    operators.register_handlers()
    return operators.client("ada", "tailrace_jobs.view_job")


def text(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_what_each_process_runs_is_linked(ada: Client) -> None:
    operators.worker("w@test", children=(101, 102))
    job = operators.runs(101, 90)
    page = text(ada, "/overview/workers/now")
    link = f'<a href="/admin/tailrace_jobs/job/{job.pk}/change/">{job.handler} {job.pk}</a>'
    assert f'{link} <span class="tr-quiet">for 2 min</span>' in page
    assert "1 of 2" in page
    assert "200 MB" in page, "the main process and its children"
    assert '<span class="tr-quiet">nothing</span>' in page
    assert f"{job.handler} {job.pk}" in text(operators.client("guest"))
    assert link not in text(operators.client("guest2"))


def test_the_memory_of_the_last_hour_is_a_line(ada: Client) -> None:
    operators.worker("young@test", pid=1, memory_minutes=[300])
    assert "at most" not in text(ada)
    operators.worker("old@test", pid=2, memory_minutes=[300, 512, 400])
    page = text(ada)
    assert "at most 512 MB in the last 3 min" in page
    assert "<polyline" in page


def test_the_largest_memory_of_each_minute_is_kept() -> None:
    memory = MemoryMinutes()
    for size, seconds in ((300, 1000), (350, 1010), (320, 1025), (310, 1080), (290, 1205)):
        memory.add(size * 1024**2, seconds)
    assert memory.values() == [350, 320, 310, 290, 290]
    memory.add(200 * 1024**2, 1_000_000)
    assert memory.values() == [200] * 60


def test_two_workers_of_one_name_are_two(ada: Client) -> None:
    operators.worker("w@test", pid=1, children=(101,))
    assert "More than one worker" not in text(ada)
    operators.worker("w@test", pid=2, children=(201,))
    first, second = operators.runs(101), operators.runs(201)
    page = text(ada)
    assert "More than one worker is called w@test" in page
    assert page.index("process 1 on host") < page.index(f" {first.pk}</a>")
    assert page.index("process 2 on host") < page.index(f" {second.pk}</a>")


def test_a_worker_that_runs_other_code_is_pointed_out(ada: Client) -> None:
    operators.worker("new@test", pid=1)
    assert "newer-code" not in text(ada)
    operators.worker("old@test", pid=2, code="0123456789ab")
    page = text(ada)
    assert "1 worker runs other code than is on this machine's disk" in page
    assert ": restart old@test host:2." in page
    assert page.count("differs from disk") == 1


def test_jobs_of_a_worker_that_is_gone(ada: Client) -> None:
    job = operators.runs(101)
    page = text(ada)
    assert "No worker was seen" in page
    assert "Running jobs without a live worker" in page
    assert f"{job.handler} {job.pk}" in page


def test_a_heartbeat_of_an_earlier_version(ada: Client) -> None:
    Pulse.objects.create(name="worker:celery@old", queues=["a"])
    page = text(ada)
    assert "celery@old" in page
    assert "newer-code" not in page


def test_the_cost_does_not_depend_on_the_workers(ada: Client) -> None:
    operators.worker("w@test")
    before = len(operators.statements(ada, PAGE))
    for number in range(5):
        operators.worker(
            "w@test", pid=number + 10, children=range(1000 * number, 1000 * number + 9)
        )
        operators.runs(1000 * number)
    assert len(operators.statements(ada, PAGE)) == before


def test_whatever_says_how_to_start_a_worker_gives_it_a_name() -> None:
    """Celery's own name for a worker is the same for all of a machine."""
    texts = [ROOT / "README.md", ROOT / "config/devserver/Procfile", *(ROOT / "docs").rglob("*.md")]
    commands = [
        (path.name, command)
        for path in texts
        for command in re.findall(
            r"celery (?:-q )?-A tailrace.config worker[^`<\n]*", path.read_text()
        )
    ]
    assert {name for name, _command in commands} >= {"deploy.md", "Procfile"}
    commands.append(("cause.py", worker_command()))
    assert [each for each in commands if not re.search(r" -n \S+@%h", each[1])] == []
