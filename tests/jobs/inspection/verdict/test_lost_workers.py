"""A worker is killed with its processes: another worker of the machine gives its jobs back."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tailrace.db import clock as database_clock
from tailrace.jobs.engine.maintenance.ticking.rescue import PROCESS_DIED, WITH_WORKER
from tailrace.jobs.engine.maintenance.workers import lost_workers
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job, Pulse
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.testing.clock import Clock
from tests.jobs import operators
from tests.kit import claimed, empty_broker, wait_until, worker
from tests.sandbox.handlers import Working
from tests.sandbox.models import Effect

LOST = PROCESS_DIED.format(how=WITH_WORKER)
CLAIMS = "abc123"
needs_process_ids = pytest.mark.skipif(
    not lost_workers.machine(), reason="the system has no ids of boots and of process ids"
)
pytestmark = [pytest.mark.django_db, needs_process_ids]


class Lost:
    """A worker with one child, which are both real processes, and a job that the child runs."""

    def __init__(self) -> None:
        self.main, self.child = (subprocess.Popen(["sleep", "600"]) for _ in range(2))

    def record(self, **facts: object) -> None:
        """Record the worker's heartbeat, and claim a job for its child."""
        pid = self.main.pid
        known = lost_workers.facts() | {"host": socket.gethostname(), "pid": pid}
        known |= {"claims": CLAIMS, "began": lost_workers.began(pid)}
        Pulse.objects.create(
            name=f"worker:lost {pid}", at=database_clock.now(), queues=[], facts=known | facts
        )
        enqueue(Working)
        [job] = claimed(Working.name)
        Job.objects.filter(pk=job.id).update(worker=self.claim, begun=True)

    @property
    def claim(self) -> str:
        return f"{socket.gethostname()}:{self.child.pid}:{CLAIMS}01234567"

    def kill(self) -> None:
        for process in (self.main, self.child):
            process.kill()
            process.wait()


@pytest.fixture
def lost(system: None) -> Iterator[Lost]:
    lost = Lost()
    yield lost
    lost.kill()


def test_the_jobs_of_a_worker_that_was_killed_run_again_at_once(lost: Lost) -> None:
    lost.record()
    assert lost_workers.rescue_jobs() == 0
    lost.kill()
    assert lost_workers.rescue_jobs() == 1
    assert (Job.objects.get().state, Job.objects.get().attempt) == ("pending", 1)
    assert Attempt.objects.get().message == LOST
    assert len(claimed(Working.name)) == 1


def test_a_job_that_loses_its_worker_again_waits_for_its_backoff_and_is_named(lost: Lost) -> None:
    lost.record()
    lost.kill()
    lost_workers.rescue_jobs()
    [job] = claimed(Working.name)
    Job.objects.filter(pk=job.id).update(worker=lost.claim, begun=True)
    assert lost_workers.rescue_jobs() == 1
    assert claimed(Working.name) == []
    [cause] = [cause for cause in verdict.work_out().causes if cause.code == "worker_killed"]
    assert LOST in cause.words


def test_a_process_that_ended_is_seen_before_its_parent_notices(lost: Lost) -> None:
    """In a container, the parent may be a process that never asks for its children."""
    lost.record()
    for process in (lost.main, lost.child):
        process.kill()
        wait_until(lambda pid=process.pid: lost_workers.began(pid) is None)
        assert Path(f"/proc/{process.pid}").exists()
    assert lost_workers.rescue_jobs() == 1


def test_a_child_that_survives_its_worker_keeps_its_job(lost: Lost) -> None:
    lost.record()
    lost.main.kill()
    assert lost_workers.rescue_jobs() == 0
    lost.child.kill()
    lost.child.wait()
    assert lost_workers.rescue_jobs() == 1


def test_another_process_with_the_id_of_the_worker_does_not_hide_its_end(lost: Lost) -> None:
    lost.record(began="1")
    assert lost_workers.rescue_jobs() == 0
    lost.child.kill()
    lost.child.wait()
    assert lost_workers.rescue_jobs() == 1


@pytest.mark.parametrize("facts", [{"machine": "another"}, {"host": "another"}, {"claims": "xyz"}])
def test_a_worker_of_another_machine_or_container_keeps_its_jobs(
    lost: Lost, facts: dict[str, str]
) -> None:
    """Its process ids say nothing here: they may be those of processes that ended here."""
    lost.record(**facts)
    lost.kill()
    assert lost_workers.rescue_jobs() == 0
    assert Job.objects.get().state == "running"


def test_a_process_that_another_user_hides_counts_as_running(lost: Lost) -> None:
    assert lost_workers.began(1) is not None
    lost.record(began="")
    lost.child.kill()
    lost.child.wait()
    assert lost_workers.rescue_jobs() == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_real_worker_is_killed_and_another_one_takes_its_jobs(
    process_env: dict[str, str], tmp_path: Path, clock: Clock
) -> None:
    """The lease holds for an hour: only the end of the processes is a reason."""
    empty_broker()
    operators.register_handlers()
    with (
        worker(process_env, [Working.name], log=tmp_path / "killed.log", concurrency=2) as killed,
        worker(process_env, ["test.other"], log=tmp_path / "other.log"),
    ):
        ids = [enqueue(Working, {"do": "sleep", "seconds": 600}) for _ in range(2)]
        wait_until(lambda: Effect.objects.count() == 2)
        Job.objects.update(lease_until=clock.now() + timedelta(hours=1))
        killed.signal(signal.SIGKILL)
        wait_until(lambda: set(Job.objects.values_list("state", flat=True)) == {"pending"})
    assert set(Attempt.objects.values_list("job_id", "message")) == {(id, LOST) for id in ids}
