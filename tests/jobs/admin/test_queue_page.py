"""The page of a queue: figures over time, what runs, what failed last, and its limits in place."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from tailrace.db.query import database_now
from tailrace.jobs.models import Pulse, Queue, QueuePeriod
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection.display.formatting import duration
from tailrace.jobs.platform.pages.charts import TIMES, round_up_time
from tests.jobs import operators

pytestmark = pytest.mark.django_db
QUEUES = "/admin/tailrace_jobs/queue/"
PAGE = f"{QUEUES}{quote(operators.Trim.name)}/change/"
RUNNING = f"{QUEUES}{operators.Trim.name}/running/"
VIEW, VIEW_JOB, PAUSE = (
    "tailrace_jobs.view_queue",
    "tailrace_jobs.view_job",
    "tailrace_jobs.pause_queue",
)


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
    assert "30 s in total" in response.context["utilisation"]


@pytest.mark.parametrize(
    ("seconds", "top", "middle"),
    [
        (0.3, "400 ms", "200 ms"),
        (4.3, "6 s", "3 s"),
        (50, "1 min", "30 s"),
        (1300, "30 min", "15 min"),
        (3700, "2 h", "1 h"),
        (60_000, "18 h", "9 h"),
        (90_000, "2 d", "1 d"),
    ],
)
def test_an_axis_of_time_ends_at_a_round_number(seconds: float, top: str, middle: str) -> None:
    end = round_up_time(seconds)
    assert (duration(end), duration(end / 2)) == (top, middle)
    assert end >= seconds


def test_all_ends_of_an_axis_can_be_read() -> None:
    for end in TIMES:
        assert round_up_time(end) == end
        for part in (end, end / 2):
            number, unit = duration(part).split()
            size = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]
            assert int(number) * size == pytest.approx(part)
    assert round_up_time(0) == 0


def test_what_the_queue_does_now_stands_above_its_charts() -> None:
    for _ in range(3):
        operators.due()
    operators.job("failed", finished_at=database_now())
    pause(operators.Trim.name, "bob")
    page = operators.client("reader", VIEW, VIEW_JOB).get(PAGE).content.decode()
    top = re.sub(r"<[^>]+>|\s+", " ", page[: page.index("The last hour</h2>")])
    top = " ".join(top.split())
    assert "Paused by bob since 20" not in top, "only who may resume it has the buttons"
    assert "State paused Queued 3 Due 3 Oldest due 1 min Running 0 Failed 1 Utilisation " in top
    keeper = operators.client("keeper", VIEW, PAUSE).get(PAGE).content.decode()
    assert re.search(r"Paused by bob since 20[\d-]+ [\d:]+ UTC \(", keeper)
    places = [keeper.index(words) for words in ("The last hour</h2>", 'name="max_running"')]
    assert places == sorted(places)


def test_utilisation_is_of_what_may_run_at_once() -> None:
    _period(5, completed=1, busy_ms=15 * 60_000)
    client = operators.client("reader", VIEW)

    def utilisation() -> str:
        return str(client.get(PAGE).context["utilisation"])

    assert utilisation() == "0.25 worker processes busy on average, 15 min in total"
    operators.worker("w@test", children=(101, 102))
    words = "12 %: 0.25 of 2 worker processes busy on average, 15 min in total"
    assert utilisation() == words
    Queue.objects.filter(name=operators.Trim.name).update(max_running=1)
    assert utilisation() == "25 %: 0.25 of 1 worker process busy on average, 15 min in total"
    Pulse.objects.update(queues=["test.work"])
    assert utilisation().startswith("0.25 worker processes")


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


def test_how_long_a_job_runs_moves_though_its_progress_stands() -> None:
    started_at = database_now() - timedelta(seconds=90)
    job = operators.job("running", progress_done=1, progress_total=4, started_at=started_at)
    client = operators.client("reader", VIEW, VIEW_JOB)
    version = client.get(RUNNING).context["version"]
    assert client.get(RUNNING, {"version": version}).status_code == 204
    job.started_at = started_at - timedelta(minutes=1)
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
    sees = operators.client("sees", VIEW, VIEW_JOB, "tailrace_jobs.view_job_payload").get(PAGE)
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
    assert (
        operators.sequential_scans(statements, "tailrace_jobs_job", "tailrace_jobs_attempt") == []
    )
    assert len(statements) < 30
