"""Two calls of a minute fill a worker: the verdict names them, and nothing that is not the case."""

from pathlib import Path

import pytest

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.jobs import operators
from tests.kit import wait_until, worker
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_two_long_calls_fill_a_worker(process_env: dict[str, str], tmp_path: Path) -> None:
    operators.register_handlers()
    with worker(process_env, [Working.name], log=tmp_path / "worker.log", concurrency=2) as started:
        for _ in range(2):
            enqueue(Working, {"do": "sleep", "seconds": 60})
        wait_until(lambda: Job.objects.running().count() == 2)
        waiting = enqueue(Working, {})
        full = wait_until(lambda: [c for c in verdict.work_out().causes if c.code == "pool_full"])
        assert verdict.work_out().codes == ["pool_full"]
        assert full[0].words.startswith("All 2 worker processes have been busy since ")
        assert f"2 × {Working.name} (job " in full[0].words
        assert f"1 due job of {Working.name} waits" in full[0].words
        why = explain(waiting)
        words = " ".join([why.summary, *(reason.words for reason in why.details)])
        assert "All 2 processes" in words
        assert "No worker" not in words
        assert "or there are none" not in words
        started.kill()
