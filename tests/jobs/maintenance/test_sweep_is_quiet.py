"""In a busy system where all is well, the sweeper finds nothing."""

from pathlib import Path

import pytest

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import LIVE
from tests.kit import empty_broker, repeated, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUEUES = ["test.work", "test.log", "test.keyed"]


def test_a_healthy_busy_system_has_no_violations(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    names = [rule.name for rule in all_invariants() if rule.every]
    runs = []
    with (
        worker(process_env, QUEUES, log=tmp_path / "worker.log", concurrency=2),
        repeated(tick.tick, 0.2),
    ):
        for _round in range(6):
            publish([NewEvent(Happened, {"who": "w", "tags": ["a"]}) for _ in range(5)])
            for do in ("retry", "snooze"):
                enqueue(Working, {"do": do})
            enqueue(Working, after=enqueue(Working))
            runs += sweep.sweep(names)
        unstarted = Job.objects.filter(handler__in=QUEUES, state__in=LIVE, claim_no=0)
        wait_until(lambda: not unstarted.exists(), 120)
        runs += sweep.sweep(names)
    assert {run.outcome for run in runs} == {"checked"}
    assert [(run.invariant, run.found) for run in runs if run.found] == []
