"""A house that runs is scraped as Prometheus does it: over HTTP, while a worker works."""

from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.metrics import page
from tests.config.test_alerts import promtool
from tests.jobs import operators
from tests.kit import PATIENCE, empty_broker, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TOKEN = "a-token-of-monitoring"


def test_a_running_house_is_scraped(
    process_env: dict[str, str], live_server: Any, settings: Any, tmp_path: Path
) -> None:
    settings.HEALTH_TOKEN = TOKEN
    empty_broker()
    operators.register_handlers()
    request = Request(f"{live_server}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})

    def scrape() -> str:
        page.forget()
        with urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def samples() -> dict[str, float]:
        """Return the samples of the queue, the type of the event, and those without a label."""
        labels = ("queue", Working.name), ("type", Happened.name), ("turn", "tick")
        wanted = [{}, *({name: value} for name, value in labels)]
        wanted += [
            {"queue": Working.name, "outcome": outcome} for outcome in ("completed", "failed")
        ]
        return {
            "_".join([sample.name, sample.labels.get("outcome", "")]).rstrip("_"): sample.value
            for family in text_string_to_metric_families(scrape())
            for sample in family.samples
            if sample.labels in wanted
        }

    def running_and_woken() -> dict[str, float]:
        """Return the samples when a job runs, and a thread of this process has sent a wake-up."""
        totals.write()  # as a thread of each process does that is no test
        now = samples()
        ready = now.get("tailrace_queue_running_jobs") == 1 and "tailrace_wake_ups_total" in now
        return now if ready else {}

    log = tmp_path / "worker.log"
    with worker(process_env, [Working.name], log=log, concurrency=2) as started:
        publish(NewEvent(Happened, {"who": "ann"}))
        for do in ("nothing", "nothing", "permanent", "sleep"):
            enqueue(Working, {"do": do, "seconds": 600})
        wait_until(lambda: samples().get("tailrace_run_seconds_count", 0) >= 3)
        shown = wait_until(running_and_woken)
        running = Job.objects.running().get()
        assert (running.handler, running.payload["do"]) == (Working.name, "sleep")
        started.kill()
    assert shown["tailrace_database_up"] == 1
    assert shown["tailrace_workers"] == 1
    assert shown["tailrace_attempts_total_completed"] == 2
    assert shown["tailrace_attempts_total_failed"] == 1
    assert shown["tailrace_queue_failed_jobs"] == 1
    assert shown["tailrace_wait_seconds_count"] >= 3
    assert shown["tailrace_wake_ups_total"] >= 1
    assert shown["tailrace_events_total"] == 1
    assert 0 <= shown["tailrace_upkeep_age_seconds"] < 60
    assert shown["tailrace_read_seconds"] < 3
    done = promtool("check", "metrics", input=scrape())
    assert done.returncode == 0, done.stdout + done.stderr
