"""A worker without heartbeats is named within ten seconds, and stays in the list."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.jobs.engine.maintenance.workers import heartbeat
from tailrace.jobs.engine.maintenance.workers.heartbeat import Heartbeat
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Pulse
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.verdict.cause import Cause
from tailrace.jobs.platform.inspection.verdict.causes.workers import worker_silent
from tailrace.jobs.runtime import shutdown, thread_failures
from tailrace.jobs.testing.clock import Clock
from tests.jobs import operators
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db
TRIM = operators.Trim.name


@pytest.fixture(autouse=True)
def _no_shutdown() -> Iterator[None]:
    before = shutdown._shared[:8]
    yield
    shutdown._shared[:8] = before


def silent() -> list[Cause]:
    return [cause for cause in verdict.work_out().causes if cause.code == "worker_silent"]


def test_three_heartbeats_fit_into_the_silence_and_all_into_ten_seconds() -> None:
    """The overview is rendered every three seconds, and /healthz reads a verdict as old."""
    assert 3 * heartbeat.INTERVAL_SECONDS < stats.SILENT_SECONDS
    assert stats.SILENT_SECONDS + verdict.CACHE_SECONDS <= 10


def test_the_worker_its_host_and_what_it_holds_are_named(system: None, clock: Clock) -> None:
    operators.worker("frozen@test", pid=2, children=(201, 202), seen=6, stopping=False)
    assert silent() == []
    operators.runs(201, 90)
    clock.step(2)
    Pulse.objects.filter(name__contains="w@test").update(at=clock.now())
    [cause] = silent()
    assert re.fullmatch(
        r"The worker frozen@test \(process 2 on host\) has sent no heartbeat for \d+ s, so it may"
        rf" be frozen, cut off or killed. It holds 1 job \(1 × {TRIM}\), which other workers"
        r" can claim from [\d :-]+ UTC \(.*\)\.",
        cause.words,
    )
    assert cause.since is not None
    assert verdict.work_out().codes == ["worker_silent"]


def test_the_command_takes_no_name_that_a_silent_worker_has(system: None) -> None:
    operators.worker("worker1@host", pid=2, children=(201,), seen=600, stopping=False)
    operators.due()
    Pulse.objects.filter(name__startswith="worker:w@test").delete()
    [unserved] = [each for each in verdict.work_out().causes if each.code == "queue_unserved"]
    assert unserved.command.startswith("celery -A tailrace.config worker -n worker2@%h -Q ")


def test_a_worker_that_was_asked_to_end_is_no_cause(system: None) -> None:
    operators.worker("ended@test", pid=2, children=(201,), seen=20, stopping=True)
    assert silent() == []


def test_a_killed_worker_without_jobs_is_forgotten_but_listed(system: None) -> None:
    operators.worker(
        "killed@test", pid=2, children=(201,), seen=worker_silent.SHOWN_SECONDS + 60, stopping=False
    )
    assert silent() == []
    page = operators.client("ada").get("/overview/workers").content.decode()
    assert "killed@test" in page
    assert page.count(">silent</span>") == 1
    operators.runs(201)
    assert len(silent()) == 1


def test_many_silent_workers_are_counted(system: None) -> None:
    for pid in range(2, 8):
        operators.worker(f"w{pid}@test", pid=pid, children=(100 * pid,), seen=20, stopping=False)
    assert silent()[-1].words == "3 more workers cannot be heard."


def test_a_heartbeat_is_cheap_and_ends_with_its_worker(
    django_assert_num_queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators.register_handlers()
    killed = f"worker:beating@test {heartbeat.socket.gethostname()}"
    Pulse.objects.create(name=f"{killed}:0", facts={
        "node": "beating@test", "host": heartbeat.socket.gethostname(), "pid": 2**22 + 1,
    })  # fmt: skip
    host = heartbeat.socket.gethostname()
    Pulse.objects.create(name=f"thread:{host}:{2**22 + 1} lamp", by=f"{host}:{2**22 + 1}")
    own = Heartbeat("beating@test", lambda: [TRIM])
    own.beat()
    assert list(Pulse.objects.values_list("name", flat=True)) == [own.name], "of one that is gone"
    with django_assert_num_queries(0):
        own.beat()
    monkeypatch.setattr(heartbeat, "INTERVAL_SECONDS", 0)
    own._due, own._look_due = 0.0, float("inf")
    with django_assert_num_queries(1):
        own.beat()
    shutdown.begin()
    own.beat()
    assert Pulse.objects.get().facts["stopping"] is True
    thread_failures._next_at.clear()
    thread_failures.record("lamp", LookupError("no oil"))
    own.remove()
    assert not Pulse.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_frozen_worker_goes_on_and_an_ended_one_is_gone(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    operators.register_handlers()
    with worker(process_env, [Working.name], log=tmp_path / "worker.log") as frozen:
        enqueue(Working, {"do": "sleep", "seconds": 3600})
        wait_until(lambda: Job.objects.running().exists())
        frozen.signal(signal.SIGSTOP)
        [cause] = wait_until(silent)
        assert frozen.node in cause.words
        assert f"process {frozen.process.pid} on " in cause.words
        assert f"It holds 1 job (1 × {Working.name})" in cause.words
        frozen.signal(signal.SIGCONT)
        wait_until(lambda: not silent())
        Job.objects.update(cancel_requested=True)
        os.kill(frozen.process.pid, signal.SIGQUIT)
        frozen.process.wait()
        wait_until(lambda: not Pulse.objects.filter(name__contains=frozen.node).exists())
