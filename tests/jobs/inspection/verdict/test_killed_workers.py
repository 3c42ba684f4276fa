"""A handler that ends its process is named at the second loss, with the signal."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from billiard import Process
from billiard.pool import EX_RECYCLE

from tailrace.jobs.engine.claiming.claim import process_name
from tailrace.jobs.engine.maintenance.ticking import losses, rescue
from tailrace.jobs.engine.maintenance.ticking.rescue import PROCESS_DIED
from tailrace.jobs.engine.maintenance.workers.children import Children, how_it_ended
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tailrace.jobs.testing.clock import Clock
from tests.jobs import operators
from tests.kit import PATIENCE, claimed, empty_broker, wait_until, worker
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db
KILLED = "was killed by signal 9 (SIGKILL)"


def lose(name: str = Working.name, how: str = KILLED) -> int:
    """Claim jobs of the queue; their process dies at once. Return how many were rescued."""
    own = claimed(name)
    Job.objects.filter(pk__in=[job.id for job in own]).update(begun=True)
    return rescue.rescue_of_process(process_name(os.getpid()), how)


def words() -> list[str]:
    return [cause.words for cause in verdict.work_out().causes if cause.code == "worker_killed"]


def test_a_job_whose_process_died_is_rescued_at_once_with_the_reason(system: None) -> None:
    id = enqueue(Working)
    assert lose() == 1
    job = Job.objects.get()
    assert (job.state, job.attempt, job.isolate) == ("pending", 1, True)
    assert job.error == f"its worker process {KILLED} while it ran"
    assert Attempt.objects.get().message == job.error
    assert id == job.pk
    assert words() == []


def test_a_process_with_the_same_host_and_id_on_another_machine_keeps_its_jobs(
    system: None,
) -> None:
    """Containers may have the same host name; the ids of their processes are mostly small."""
    enqueue(Working)
    [job] = claimed(Working.name)
    host, pid, claim = job.worker.split(":")
    Job.objects.update(worker=f"{host}:{pid}:other!{claim[6:]}")
    assert rescue.rescue_of_process(process_name(os.getpid()), KILLED) == 0
    assert Job.objects.get().state == "running"


def test_its_backoff_is_honoured(system: None, clock: Clock) -> None:
    clock.stop()
    enqueue(Working)
    lose()
    shortest, longest = 60 * 0.8, 60 * 1.2
    wait = (Job.objects.get().due_at - clock.now()).total_seconds()
    assert shortest - 1 <= wait <= longest + 1
    assert claimed(Working.name) == []
    clock.step(longest + 1)
    lose()
    wait = (Job.objects.get().due_at - clock.now()).total_seconds()
    assert 300 * 0.8 - 1 <= wait <= 300 * 1.2 + 1


def test_the_handler_is_named_at_the_second_loss(system: None) -> None:
    for _ in range(2):
        assert words() == []
        enqueue(Working)
        lose()
    [text] = words()
    assert text.startswith(f"{Working.name} loses its workers: 2 times since ")
    assert text.endswith(f": its worker process {KILLED} while it ran.")


def test_losses_are_forgotten_after_an_hour(system: None, clock: Clock) -> None:
    for _ in range(2):
        enqueue(Working)
        lose()
    clock.step(losses.FORGOTTEN_SECONDS + 1)
    assert words() == []
    enqueue(Working)
    lose()
    assert words() == []


def test_a_job_that_was_not_begun_waits_for_no_backoff(system: None) -> None:
    enqueue(Working)
    [job] = claimed(Working.name)
    Job.objects.update(begun=False)
    rescue.rescue_of_process(job.worker.rpartition(":")[0] + ":", KILLED)
    assert Job.objects.get().attempt == 0
    assert len(claimed(Working.name)) == 1


def test_handlers_that_ran_together_are_named_if_a_job_was_lost_before(
    system: None, clock: Clock
) -> None:
    """A process with calls in flight runs several handlers: one of them ends it."""
    for handler in (Working, Other):
        enqueue(handler)
    [job], _ = claimed(Working.name), claimed(Other.name)
    process = job.worker.rpartition(":")[0] + ":"
    for loss in (1, 2):
        assert words() == []
        assert rescue.rescue_of_process(process, KILLED) == 2, loss
        clock.step(3600 / 2)
        claimed(Working.name), claimed(Other.name)
    assert len(words()) == 2


def test_a_lease_that_expires_twice_names_the_handler(system: None, clock: Clock) -> None:
    enqueue(Working)
    for _ in range(2):
        assert words() == []
        claimed(Working.name)
        clock.step(61)
        rescue.rescue()
    assert "the lease expired" in words()[0]


def test_jobs_of_other_processes_stay(system: None) -> None:
    enqueue_many(Working, [{}] * 2)
    [first, _second] = claimed(Working.name, 2)
    Job.objects.filter(pk=first.id).update(worker="other:1:abc")
    assert rescue.rescue_of_process("other:1:", KILLED) == 1
    assert Job.objects.running().count() == 1


def test_only_an_unexpected_end_of_a_process_is_a_loss(system: None) -> None:
    """Each process of the pool holds a job."""
    codes = (os.EX_OK, EX_RECYCLE, 1)
    processes = [Process(target=os._exit, args=(code,)) for code in codes]
    processes += [Process(target=time.sleep, args=(600,)) for _ in range(2)]
    enqueue_many(Working, [{}] * len(processes))
    for process, job in zip(processes, claimed(Working.name, len(processes)), strict=True):
        process.start()
        Job.objects.filter(pk=job.id).update(worker=f"{process_name(process.pid)}a", begun=True)
    *ended, running = processes
    # As Celery's pool, which has billiard's.
    pool = SimpleNamespace(_pool=SimpleNamespace(_pool=list(processes)))
    children = Children(pool)
    try:
        children.rescue_jobs_of_dead()
        os.kill(ended[-1].pid, signal.SIGKILL)
        for process in ended:
            process.join(PATIENCE)
        pool._pool._pool = [running]
        for _ in range(2):
            children.rescue_jobs_of_dead()
    finally:
        running.terminate()
        running.join(PATIENCE)
    lost = [PROCESS_DIED.format(how=how) for how in ("ended with exit status 1", KILLED)]
    jobs = Job.objects.order_by("pk").values_list("state", "error")
    assert list(jobs) == [
        ("running", ""), ("running", ""), ("pending", lost[0]), ("pending", lost[1]),
        ("running", ""),
    ]  # fmt: skip


def test_the_signals_of_a_system_have_names() -> None:
    assert how_it_ended(-64) == "was killed by signal 64 (SIGRTMAX)"
    assert how_it_ended(-63) == "was killed by signal 63"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_real_worker_whose_process_is_killed(process_env: dict[str, str], tmp_path: Path) -> None:
    """The lease would hold for a minute: only the end of the process is a reason to rescue it."""
    empty_broker()
    operators.register_handlers()
    ids = [enqueue(Working, {"do": "kill"}) for _ in range(2)]
    with worker(process_env, [Working.name], log=tmp_path / "worker.log"):
        [text] = wait_until(words)
    assert text.startswith(f"{Working.name} loses its workers: 2 times since ")
    assert KILLED in text
    lost = Attempt.objects.filter(outcome="lost")
    assert lost.count() >= 2
    assert KILLED in explain(ids[0] or 0).summary or Job.objects.get(pk=ids[0]).state == "running"
