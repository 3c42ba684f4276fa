"""All workers are killed: the pages of machines and the metric say so, by one verdict, in time."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Pulse
from tailrace.jobs.platform.inspection import broker, verdict
from tailrace.jobs.platform.inspection.metrics import page
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.testing import Clock
from tests.jobs import operators
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAGES = ("/healthz", "/readyz")
TOKEN = "a-token-of-monitoring"


@pytest.fixture
def monitoring(settings, monkeypatch) -> Client:
    settings.HEALTH_TOKEN = TOKEN
    broker.recent.forget()
    monkeypatch.setattr(broker, "BROKER_CACHE_SECONDS", 0)
    wait_until(lambda: broker.broker() == "ok")
    monkeypatch.setattr(broker, "BROKER_CACHE_SECONDS", 600)
    return Client(headers={"Authorization": f"Bearer {TOKEN}"})


def states(client: Client) -> tuple[str, list[str]]:
    """Return the status and the codes of the causes, which are the same on all pages."""
    verdict.forget()
    page.forget()
    answers = [client.get(address) for address in PAGES]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = (answer.json() for answer in answers)
    assert (first["status"], first["causes"]) == (second["status"], second["causes"])
    assert Client().get("/readyz").json()["status"] == first["status"]
    metric = client.get("/metrics").content.decode()
    assert f"tailrace_healthy {float(first['status'] == 'healthy')}\n" in metric
    return first["status"], [cause["code"] for cause in first["causes"]]


def test_all_workers_are_killed(
    process_env: dict[str, str], tmp_path: Path, clock: Clock, monitoring: Client
) -> None:
    empty_broker()
    operators.register_handlers()
    with worker(process_env, [Working.name], log=tmp_path / "worker.log") as killed:
        enqueue(Working, {"do": "sleep", "seconds": 120})
        wait_until(lambda: Job.objects.running().exists() and states(monitoring)[0] == "healthy")
        killed.signal(signal.SIGKILL)
        killed.process.wait()
    last_tick = Pulse.objects.get(name="tick").at

    def seconds_later(seconds: float) -> tuple[str, list[str]]:
        clock.step((last_tick + timedelta(seconds=seconds) - clock.now()).total_seconds())
        return states(monitoring)

    assert seconds_later(stats.SILENT_SECONDS - 3) == ("healthy", [])
    assert seconds_later(stats.SILENT_SECONDS + 0.1) == ("degraded", ["worker_silent"])
    late = ["worker_silent", "tick_late"]
    assert seconds_later(stats.TICK_LATE_SECONDS + 0.1) == ("degraded", late)
    enqueue(Working, {})
    unserved = ["worker_silent", "queue_unserved", "tick_late"]
    assert seconds_later(120) == ("degraded", unserved)
