"""The page of latencies: percentiles by queue, of the last hour or day."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from tailrace.db.query import database_now
from tailrace.jobs.models import QueuePeriod
from tailrace.jobs.models.queue_period import ALL_QUEUES
from tailrace.jobs.platform.inspection.queues.latency import SPANS, latencies
from tailrace.jobs.platform.pages import latency
from tests.jobs import operators

pytestmark = pytest.mark.django_db
PAGE, PART = "/overview/latency", "/overview/latency/now"
QUEUE = operators.Trim.name


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()
    latency.forget()


@pytest.fixture
def hour(clock) -> datetime:
    """Go to 35 minutes and some seconds after a full hour; return the hour."""
    hour = database_now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    clock.step((hour - database_now()).total_seconds() + 35 * 60 + 30)
    return hour


def _sum(at: datetime, seconds: int, jobs: int, queue: str = QUEUE, number: str = "20") -> None:
    times = {number: jobs}
    QueuePeriod.objects.create(queue=queue, seconds=seconds, at=at, wait=times, run={"10": jobs})


def test_each_job_counts_once_although_periods_of_all_lengths_have_it(hour: datetime) -> None:
    for minute in range(35):
        _sum(hour + timedelta(minutes=minute), 60, 1)
    for minute in (0, 10, 20):
        _sum(hour + timedelta(minutes=minute), 600, 10)
    _sum(hour - timedelta(minutes=60), 3600, 500)
    _sum(hour - timedelta(hours=30), 3600, 9000)
    _sum(hour, 60, 1_000_000, queue=ALL_QUEUES)
    [shown] = latencies(SPANS["1h"])
    assert (shown.queue, shown.jobs) == (QUEUE, 35)
    [shown] = latencies(SPANS["24h"])
    assert shown.jobs == 535, "the whole hour before, and 35 minutes"


def test_the_longest_wait_comes_first_with_its_percentiles(hour: datetime) -> None:
    _sum(hour, 60, 10, queue="operators.quick", number="5")
    _sum(hour, 60, 10, number="30")
    page = operators.client("reader", "tailrace_jobs.view_queue").get(PAGE).content.decode()
    assert page.index(f'id="latency-{QUEUE}"') < page.index('id="latency-operators.quick"')
    assert "8 s" in page, "class 30 ends at 1.35 ** 30 ms"
    assert f"/queue/{QUEUE}/change/?window=1h" in page
    latency.forget()
    plain = operators.client("plain").get(PAGE).content.decode()
    assert QUEUE in plain
    assert "/change/" not in plain, "pages of queues need their permission"


@pytest.mark.parametrize("address", [PAGE, PART])
def test_only_staff_see_it(address: str) -> None:
    assert Client().get(address).status_code == 302
    assert operators.client("guest", staff=False).get(address).status_code == 403
    assert operators.client("staff").get(address).status_code == 200
    assert operators.client("more").get(address, {"window": "x"}).status_code == 200
    assert Client().post(address).status_code in (302, 405)


def test_without_jobs_it_says_why_it_is_empty() -> None:
    assert "No job ended in the last hour" in operators.client("staff").get(PART).content.decode()
