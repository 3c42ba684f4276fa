"""The figures and charts of the overview, against rows of a known time."""

import re
from datetime import datetime, timedelta

import pytest

from tailrace.db.query import database_now
from tailrace.jobs.engine.maintenance import periods
from tailrace.jobs.models import Queue, QueuePeriod, Throughput
from tailrace.jobs.models.queue_period import ALL_QUEUES
from tailrace.jobs.platform.pages.figures import Figure
from tests.jobs import operators

pytestmark = pytest.mark.django_db
QUEUE = operators.Trim.name


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


@pytest.fixture
def minute(clock) -> datetime:
    """Go to the middle of a minute, which is 90 minutes after a full hour; return its begin."""
    hour = database_now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    clock.step((hour - database_now()).total_seconds() + 5400 + 30)
    return hour + timedelta(minutes=90)


def _sum(at: datetime, seconds: int = 60, **fields: object) -> None:
    QueuePeriod.objects.create(queue=ALL_QUEUES, seconds=seconds, at=at, **fields)


def _ago(minute: datetime, minutes: int) -> datetime:
    return minute - timedelta(minutes=minutes)


def _figures(*permissions: str, window: str = "1h", name: str = "reader") -> dict[str, Figure]:
    response = operators.client(name, *permissions).get("/", {"window": window})
    assert response.status_code == 200
    return {figure.id: figure for figure in response.context["figures"]}


def test_rates_are_the_mean_of_the_last_five_minutes_that_are_over(minute: datetime) -> None:
    for ago, completed in ((1, 40), (2, 10), (3, 0), (4, 0), (5, 0), (6, 5000)):
        _sum(_ago(minute, ago), completed=completed, events=2 * completed)
    Throughput.objects.create(queue=QUEUE, minute=minute, completed=7000, retried=1, failed=1)
    figures = _figures("tailrace_events.view_event")
    assert figures["rate"].value == "10", "the current minute is not over"
    assert figures["rate"].detail == "100 % completed · 1 retried"
    assert figures["rate"].text == "12,052 calls of handlers ended in the last hour"
    assert figures["events"].value == "20"
    assert figures["events"].detail == "10,100 in the last hour"
    assert figures["failed"].detail == "1 in the last hour"
    assert len(figures["rate"].line.split()) == 59


def test_minutes_that_are_not_summed_up_yet_count_as_far_as_they_are_known(
    minute: datetime,
) -> None:
    _sum(_ago(minute, 3), completed=5, events=50, wait={"20": 5}, run={"20": 5})
    for ago in (1, 2):
        Throughput.objects.create(queue=QUEUE, minute=_ago(minute, ago), completed=20)
    figures = _figures("tailrace_events.view_event")
    assert figures["rate"].value == "9", "(20 + 20 + 5) / 5"
    assert figures["events"].value == "10", "50 / 5: the last minutes are left out, not zero"
    assert len(figures["events"].line.split()) == 57
    page = operators.client("another").get("/").content.decode()
    at = f"{_ago(minute, 2):%Y-%m-%d %H:%M:%S} UTC"
    assert re.search(rf'were summed up <time [^>]*title="{at}">[23] min ago</time>', page)


def test_times_are_percentiles_of_the_window(minute: datetime) -> None:
    _sum(_ago(minute, 2), wait={"0": 90, "31": 10}, run={"24": 100})
    _sum(_ago(minute, 80), seconds=600, wait={"40": 1000}, run={"40": 1000})
    figures = _figures()
    assert figures["wait"].value == "10 s", "class 31 ends at 1.35 ** 31 ms"
    assert figures["wait"].detail == "p50 1 ms"
    assert figures["run"].detail.startswith("p50 1 s")
    assert _figures(window="24h", name="another")["wait"].value == "3 min"


def test_failed_and_running_jobs_are_counted_now(minute: datetime) -> None:
    operators.worker("celery@one", children=(101, 102, 103))
    operators.runs(101)
    for _ in range(4):
        operators.job("failed")
    figures = _figures()
    assert (figures["failed"].value, figures["failed"].is_bad) == ("4", True)
    assert (figures["running"].value, figures["running"].unit) == ("1", "of 3")


def test_a_figure_leads_to_what_it_counts_if_the_user_may_see_it(minute: datetime) -> None:
    rights = ("tailrace_jobs.view_job", "tailrace_jobs.view_queue", "tailrace_events.view_event")
    figures = _figures(*rights)
    assert figures["failed"].address == "/admin/tailrace_jobs/job/?state=failed"
    assert figures["running"].address == "/admin/tailrace_jobs/job/?state=running"
    assert figures["events"].address == "/admin/tailrace_events/event/"
    shown = _figures(name="stranger")
    times = "/overview/latency?window=1h"
    assert [figure.address for figure in shown.values()] == ["", times, times, "", ""]
    assert "events" not in shown, "counts of events need their permission"
    groups = operators.client("groups", *rights, "tailrace_jobs.view_failuregroup").get("/")
    assert "failuregroup/?jobs=failed" in groups.content.decode()


def test_the_charts_have_what_happened_and_what_waited(minute: datetime) -> None:
    _sum(_ago(minute, 9), completed=30, retried=2, failed=1, due=70)
    _sum(_ago(minute, 8), completed=10, due=20)
    response = operators.client("reader").get("/")
    counts, due = response.context["charts"]
    assert counts.summary == "40 completed, 2 retried, 1 failed"
    assert [list(values) for _time, values in counts.rows] == [["10", "0", "0"], ["30", "2", "1"]]
    assert due.summary == "at most 70 due jobs"
    assert [list(values) for _time, values in due.rows] == [["20"], ["70"]]
    page = response.content.decode()
    assert 'role="img" aria-labelledby="title-due desc-due"' in page


def test_deploys_and_pauses_are_marks_of_the_chart(minute: datetime) -> None:
    started = {"old": _ago(minute, 500), "new": _ago(minute, 20)}
    for pid, (code, at) in enumerate(started.items(), 1):
        operators.worker(f"w{pid}@one", pid=pid, code=code, started_at=at.isoformat())
    operators.worker("late@one", pid=9, code="new", started_at=_ago(minute, 5).isoformat())
    Queue.objects.filter(name=QUEUE).update(paused_at=_ago(minute, 10))
    response = operators.client("reader").get("/")
    lines = response.context["charts"][0].lines
    shown = [(line.at, line.text) for line in lines]
    assert shown == [
        (_ago(minute, 20), "workers started with code new"),
        (_ago(minute, 10), f"{QUEUE} paused"),
    ]
    assert [line.x for line in lines] == ["390.0", "490.0"], "of 600, and the last 10 are now"
    day = operators.client("day").get("/", {"window": "24h"})
    assert len(day.context["charts"][0].lines) == 3


@pytest.mark.parametrize(("window", "title"), [("7d", "last 7 days"), ("x", "last hour")])
def test_the_window_is_kept_in_the_address_and_by_the_poll(window: str, title: str) -> None:
    client = operators.client("reader")
    page = client.get("/", {"window": window}).content.decode()
    known = window if window == "7d" else "1h"
    assert f'hx-get="/overview/panels?window={known}"' in page
    for text in (page, client.get("/overview/panels", {"window": window}).content.decode()):
        assert f"The {title}</h2>" in text


def test_an_empty_system_has_figures_too() -> None:
    periods.add_up()
    figures = _figures("tailrace_events.view_event")
    assert [figure.value for figure in figures.values()] == ["0", "–", "–", "0", "0", "0"]
    assert {figure.line for figure in figures.values()} == {""}
