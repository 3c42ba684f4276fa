"""The page of a queue: figures over time, what runs, what failed last, and its limits in place."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from db.query import database_now
from jobs.models import Queue, QueuePeriod
from tests.jobs import operators

pytestmark = pytest.mark.django_db
QUEUES = "/admin/jobs/queue/"
PAGE = f"{QUEUES}{quote(operators.Trim.name)}/change/"
RUNNING = f"{QUEUES}{operators.Trim.name}/running/"
VIEW, VIEW_JOB, PAUSE = "jobs.view_queue", "jobs.view_job", "jobs.pause_queue"


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


def _period(minutes_ago: int, **fields: object) -> QueuePeriod:
    at = database_now().replace(second=0, microsecond=0) - timedelta(minutes=minutes_ago)
    return QueuePeriod.objects.create(queue=operators.Trim.name, seconds=60, at=at, **fields)


def test_charts_have_axes_a_title_and_the_same_figures_as_a_table() -> None:
    _period(5, completed=30, retried=2, failed=1, wait={"20": 30}, run={"25": 29, "40": 1})
    response = operators.client("reader", VIEW).get(PAGE)
    counts, wait, run = response.context["charts"]
    assert counts.summary == "30 completed, 2 retried, 1 failed"
    assert list(counts.y_labels) == ["50", "25", "0"]
    assert counts.x_labels[-1] == "now"
    assert [list(values) for _time, values in counts.rows] == [["30", "2", "1"]]
    assert wait.summary.startswith("p50 ")
    assert all(series.path for series in (*counts.series, *wait.series, *run.series))
    page = response.content.decode()
    assert 'role="img" aria-labelledby="title-counts desc-counts"' in page
    assert '<title id="title-run">Run: from claim to settle, the last hour</title>' in page


@pytest.mark.parametrize(("window", "periods"), [("1h", 60), ("24h", 144), ("7d", 168), ("x", 60)])
def test_a_window_is_chosen_by_the_address(window: str, periods: int) -> None:
    _period(1, completed=3, busy_ms=30_000, wait={"1": 3}, run={"1": 3})
    response = operators.client("reader", VIEW).get(PAGE, {"window": window})
    assert response.context["window"].seconds // response.context["window"].period == periods
    assert response.context["charts"][0].summary.startswith("3 completed")
    assert "30 s in all" in response.context["utilisation"]


def test_running_jobs_have_their_worker_and_bars_and_are_bounded() -> None:
    now = database_now()
    operators.job(
        "running", worker="w@h:1", started_at=now - timedelta(seconds=60), progress_done=1,
        progress_total=4,
    )  # fmt: skip
    operators.job("running", started_at=now - timedelta(seconds=30))
    client = operators.client("reader", VIEW, VIEW_JOB)
    part = client.get(RUNNING)
    by_progress, by_time = part.context["running_jobs"]
    assert (by_progress.share, by_time.share) == (25, 5)
    assert "w@h:1" in part.content.decode()
    for _ in range(60):
        operators.job("running")
    part = client.get(RUNNING)
    assert len(part.context["running_jobs"]) == 50
    assert part.context["more_running"]


def test_what_has_not_changed_is_not_sent_again() -> None:
    job = operators.job("running", progress_done=1, progress_total=4)
    client = operators.client("reader", VIEW, VIEW_JOB)
    version = client.get(RUNNING).context["version"]
    assert client.get(RUNNING, {"version": version}).status_code == 204
    job.progress_done = 2
    job.save()
    assert client.get(RUNNING, {"version": version}).status_code == 200


def test_jobs_need_their_permission_and_errors_another_one() -> None:
    operators.job("failed", error="a treasure", finished_at=database_now())
    for number in range(12):
        operators.job("failed", error=f"ember {number}", finished_at=database_now())
    without = operators.client("without", VIEW)
    assert "Last failures" not in without.get(PAGE).content.decode()
    assert without.get(RUNNING).status_code == 403
    reader = operators.client("reader", VIEW, VIEW_JOB).get(PAGE)
    assert len(reader.context["failed_jobs"]) == 10
    assert "ember" not in reader.content.decode()
    sees = operators.client("sees", VIEW, VIEW_JOB, "jobs.view_job_payload").get(PAGE)
    assert "ember 11" in sees.content.decode()
    assert Client().get(RUNNING).status_code == 302
    assert operators.client("other", VIEW_JOB).get(f"{QUEUES}nothing/running/").status_code == 404


def test_pause_and_limits_are_in_place_and_audited() -> None:
    keeper = operators.client("keeper", VIEW, PAUSE)
    page = keeper.get(PAGE).content.decode()
    assert 'name="max_running"' in page
    assert 'name="awake"' not in page
    assert keeper.post(f"{QUEUES}{operators.Trim.name}/pause/")["Location"] == PAGE
    response = keeper.post(PAGE, {"max_running": "2", "rate_limit": ""})
    assert response["Location"] == PAGE
    queue = Queue.objects.get(name=operators.Trim.name)
    assert (queue.paused, queue.max_running) == (True, 2)
    assert LogEntry.objects.count() == 2
    assert 'name="max_running"' not in operators.client("reader", VIEW).get(PAGE).content.decode()


def test_the_page_reads_no_table_from_end_to_end() -> None:
    operators.fill_tables(3_000)
    statements = operators.statements(operators.client("reader", VIEW, VIEW_JOB), PAGE)
    assert operators.sequential_scans(statements, "jobs_job", "jobs_attempt") == []
    assert len(statements) < 30
