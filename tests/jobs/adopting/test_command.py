"""`manage.py tailrace adopt`."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from celery import Celery, current_app
from django.core.management import CommandError

from tailrace.db.query import execute
from tailrace.events.management.subcommands import call_subcommand
from tailrace.jobs.platform.adopting import workers
from tailrace.jobs.platform.adopting.report import report_on
from tests import forks
from tests.jobs.adopting.shop import app
from tests.kit import ROOT, wait_until

pytestmark = pytest.mark.django_db


HEADINGS = [
    "Tasks that need a change first",
    "Tasks that stay plain tasks of Celery",
    "Tasks that can move as they are",
    "Settings",
    "Queues",
]


@pytest.fixture
def as_current() -> Iterator[object]:
    """Return a function that makes an application the current one of this test."""
    before = current_app._get_current_object()
    yield Celery.set_current
    before.set_current()


def adopt(*words: str) -> tuple[str, int]:
    """Return what the command prints, and its exit status."""
    out = StringIO()
    try:
        call_subcommand("adopt", "--no-workers", *words, stdout=out)
    except SystemExit as end:
        return out.getvalue(), end.code
    return out.getvalue(), 0


def test_it_prints_what_has_to_change_and_its_status_is_one(as_current) -> None:
    as_current(app)
    text, status = adopt()
    assert status == 1
    assert text.startswith("Celery application 'shop': ")
    assert [heading for heading in HEADINGS if heading in text.splitlines()] == HEADINGS
    assert "  stall.pickled\n    its serializer is 'pickle', which is refused" in text
    assert "task_acks_late = True has no meaning for durable tasks" in text
    assert "not checked: no worker answered" in text
    assert text.splitlines()[-1].startswith("Before they move: 8 tasks need a change")


def test_an_application_that_can_move_gets_the_line_to_write(as_current) -> None:
    mill = Celery("mill", set_as_current=False)

    @mill.task(name="mill.grind")
    def grind(corn: str) -> None:
        pass

    as_current(mill)
    text, status = adopt()
    assert status == 0, text
    assert text.splitlines()[-1] == (
        "They can move: Celery('mill', task_cls=\"tailrace.celery:Task\")"
    )


def test_it_works_before_the_first_migrate(as_current) -> None:
    shop = Celery("shop", set_as_current=False, broker="memory://")

    @shop.task(name="shop.grind")
    def grind(corn: str) -> None:
        pass

    shop.conf.beat_schedule = {"hourly": {"task": "shop.grind", "schedule": 3600.0}}
    as_current(shop)
    execute("DROP TABLE tailrace_jobs_schedule CASCADE")
    text, status = adopt()
    assert status == 0
    assert "hourly" in text


def test_json_has_the_same(as_current) -> None:
    as_current(app)
    text, status = adopt("--json")
    report = json.loads(text)
    assert status == 1
    assert (report["app"], report["can_move"], report["queues"]) == ("shop", False, None)
    tasks = {task["name"]: task for task in report["tasks"]}
    assert tasks["stall.of_base"]["verdict"] == "stays"
    assert tasks["stall.encode"]["queue"] == "stall_media"
    assert report["obstacles"] == ["8 tasks need a change"]


def test_a_project_without_an_application_is_told_so(as_current) -> None:
    as_current(Celery("default", set_as_current=False))
    with pytest.raises(CommandError, match="no Celery application is loaded; import it in"):
        adopt()


def test_a_broker_that_does_not_answer_is_no_error() -> None:
    away = Celery("away", broker="redis://127.0.0.1:9/0", set_as_current=False)
    assert workers.ask(away) is None


@pytest.mark.slow
@pytest.mark.broker
def test_a_queue_that_no_running_worker_consumes_is_an_obstacle(
    process_env, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    celery = ["-m", "celery", "-A", "tests.jobs.adopting.shop", "worker"]
    with log.open("wb") as output:
        process = forks.Fork(
            [*celery, "-Q", "stall_media", "-P", "threads", "-l", "INFO"],
            cwd=ROOT, env=process_env, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or b" ready." in log.read_bytes())
        assert process.poll() is None, log.read_text()
        report = report_on(app)
    finally:
        process.kill()
        process.wait()
    assert report.workers is not None
    assert report.unserved_queues == ("celery",)
    [name] = report.workers.queues["stall_media"]
    assert "no worker consumes: celery" in list(report.obstacles())
    assert f"the pool of {name}" in [each.name for each in report.settings]
