"""Tasks in real `celery worker` processes, and in a process that begins afresh."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F

from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Job, Queue
from tests import forks
from tests.kit import ROOT, claimed, empty_broker, wait_until, worker
from tests.sandbox import tasks
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_a_worker_runs_tasks_of_both_kinds(process_env, tmp_path: Path) -> None:
    empty_broker()
    queues = ["tests.sandbox.tasks.add", "tests.sandbox.tasks.exchange"]
    with worker(process_env, queues, log=tmp_path / "worker.log"):
        results = [tasks.add.enqueue(1, b=2), tasks.exchange.enqueue("a")]

        def finished() -> bool:
            for result in results:
                result.refresh()
            return all(result.is_finished for result in results)

        wait_until(finished, 20)
        assert [result.return_value for result in results] == [3, "A"]
        assert set(Effect.objects.values_list("note", flat=True)) == {"1 + 2", "a"}


def test_a_task_whose_worker_was_lost_lists_it_and_runs_again(run_jobs) -> None:
    result = tasks.add.enqueue(1)
    claimed("tests.sandbox.tasks.add")
    result.refresh()
    assert (result.status, result.attempts) == ("RUNNING", 1)
    Job.objects.update(lease_until=F("started_at") - timedelta(seconds=1))
    rescue.rescue(ids=[int(result.id)])
    run_jobs()
    result.refresh()
    assert (result.status, result.attempts) == ("SUCCESSFUL", 2)
    [error] = result.errors
    assert error.exception_class.__name__ == "WorkerLost"
    assert "its worker was lost" in error.traceback


def test_each_process_knows_the_tasks_when_it_starts(process_env) -> None:
    """So `migrate` does not retire their queues, and beat and workers create missing ones."""
    code = "import django; django.setup(); from tailrace.jobs.engine import registry;"
    code += "print(*registry.all_handlers())"
    done = forks.run(["-c", code], env=process_env, cwd=ROOT, capture_output=True, text=True)
    known = set(done.stdout.split())
    assert {"tests.sandbox.tasks.add", "tests.sandbox.helpers.helped"} <= known, done.stderr
    assert "tests.sandbox.tasks.foreign" not in known
    rows = set(Queue.objects.active().values_list("name", flat=True))
    assert {name for name in known if name.startswith("tests.sandbox.")} <= rows
