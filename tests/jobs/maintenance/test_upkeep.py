"""Ticks, sweeps and heartbeats come from threads of workers and beats, whatever the pool does."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from tailrace.jobs.engine.maintenance.upkeep import Duty, UpkeepThread
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Pulse, Queue, Schedule, Slot
from tailrace.jobs.models.schedule import OF_CODE
from tailrace.jobs.platform.inspection.queues import stats
from tests import forks
from tests.jobs.maintenance.test_many_schedules import fill
from tests.kit import PATIENCE, ROOT, broker_length, empty_broker, held, wait_until, worker
from tests.sandbox.handlers import Other, Poison, Working
from tests.sandbox.models import Effect

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
]
HOUR = 3600


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


@pytest.fixture(autouse=True)
def _empty() -> None:
    empty_broker()


@contextmanager
def process(env: dict[str, str], log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with these words in its own session, and kill it at the end."""
    with log.open("ab") as file:
        running = forks.Fork(
            words, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield running
    except BaseException:
        sys.stderr.write(log.read_text(errors="replace")[-6000:])
        raise
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(PATIENCE)


def beat(env: dict[str, str], log: Path) -> Any:
    return process(
        env, log, "-m", "celery", "-A", "tailrace.config", "beat", "--pidfile=", "-l", "INFO"
    )


def ticked() -> Pulse | None:
    """The last tick, once one was taken."""
    return Pulse.objects.exclude(by="").filter(pk="tick").first()


def ticks_again() -> None:
    before = wait_until(ticked, 30, "a tick")
    wait_until(lambda: Pulse.objects.get(pk="tick").at > before.at, 30, "another tick")


def running(count: int = 1) -> bool:
    return Job.objects.running().count() == count


def sessions() -> int:
    """How many sessions the upkeep threads have on this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name IN ('tailrace tick', 'tailrace sweep')"
        )
        return int(cursor.fetchone()[0])


# --- the pool, the beat and the queues have no part in it ---


@pytest.mark.long
def test_a_full_pool_delays_no_retry_elsewhere(process_env, log, tmp_path) -> None:
    other = tmp_path / "other.log"
    with (
        worker(process_env, ["test.work"], log=log, concurrency=2),
        worker(process_env, ["test.other"], log=other),
    ):
        for _ in range(2):
            enqueue(Working, {"do": "sleep", "seconds": HOUR})
        wait_until(lambda: running(2), 30, "two long calls fill the pool")
        retried = enqueue(Other, {"do": "retry", "seconds": 1})
        wait_until(lambda: Job.objects.get(pk=retried).state == "failed", 60, "three attempts")
        assert running(2)


def test_a_worker_whose_pool_is_full_ticks(process_env, log) -> None:
    with worker(process_env, ["test.work"], log=log, concurrency=2) as full:
        for _ in range(2):
            enqueue(Working, {"do": "sleep", "seconds": HOUR})
        wait_until(lambda: running(2), 30, "two long calls fill the pool")
        enqueue(Other, {}, delay=1)
        wait_until(lambda: broker_length("test.other") == 1, 30, "the wake-up of another queue")
        tick = stats.last_tick()
        assert tick.by is not None
        assert full.node in tick.by
        assert f"{socket.gethostname()}:{full.process.pid}" in tick.by
        assert running(2)


def test_lost_jobs_are_rescued_without_a_beat(process_env, log) -> None:
    with worker(process_env, ["test.poison"], log=log):
        lost = enqueue(Poison, {"do": "kill"})

        def has_failed() -> bool:
            Job.objects.running().update(lease_until=F("started_at"))
            return Job.objects.get(pk=lost).state == "failed"

        wait_until(has_failed, 60, "two attempts")


def test_a_worker_creates_a_missing_queue_and_leaves_schedules(process_env, log) -> None:
    """It may run the code of before a deploy, whose schedules are no longer those of the rows."""
    Queue.objects.filter(pk="test.work").delete()
    schedule = Schedule.objects.create(
        name="builds.poll:main", handler="builds.poll", routing_key="main", owner=OF_CODE,
        every_seconds=12345, next_run_at="2099-01-01T00:00Z",
    )  # fmt: skip
    env = process_env | {"OBS_BACKEND_URL": "main=http://127.0.0.1:9/"}
    with worker(env, ["test.work"], log=log):
        wait_until(lambda: Queue.objects.filter(pk="test.work").exists())
        ticks_again()
    schedule.refresh_from_db()
    assert schedule.every_seconds == 12345


def test_a_beat_alone_ticks_and_sweeps(process_env, log) -> None:
    with beat(process_env | {"JOBS_SWEEP_SECONDS": "1"}, log):
        enqueue(Working, {}, delay=1)
        wait_until(lambda: broker_length("test.work") == 1, 40, "the wake-up of a due queue")
        wait_until(lambda: Pulse.objects.filter(pk="sweep").exclude(by=""), 30, "a sweep")
        assert stats.last_tick().by


def test_two_beats_double_no_slot_and_run_what_was_missed_once(process_env, log, tmp_path) -> None:
    """Three periods passed while nothing ran; both beats want to work them off."""
    other = tmp_path / "other.log"
    with beat(process_env, log), beat(process_env, other):
        wait_until(lambda: sessions() == 4, 60, "a tick and a sweep of each beat")
        fill(600, wait=-150)  # every 60 seconds: due 150, 90 and 30 seconds ago
        wait_until(lambda: Slot.objects.filter(outcome="ran").count() == 600, 25, "their jobs")
    jobs = Job.objects.filter(schedule__isnull=False)
    assert jobs.count() == jobs.values("schedule").distinct().count() == 600
    assert Slot.objects.filter(outcome="merged").count() == 1200


def test_a_beat_sends_tasks_of_operators(process_env, log) -> None:
    second = IntervalSchedule.objects.create(every=1, period="seconds")
    PeriodicTask.objects.create(
        name="mine", task="test.work", queue="test.work", routing_key="test.work", interval=second
    )
    with beat(process_env, log):
        wait_until(lambda: broker_length("test.work") >= 2, 40, "an operator's own task")


# --- what is stopped, killed or locked ---


def test_a_beat_starts_beside_rows_that_somebody_holds(process_env, log) -> None:
    """It ticks and sweeps meanwhile; what it had to leave is done by the next that starts."""
    obsolete = Schedule.objects.create(
        name="poll of a former backend", handler="builds.poll", owner="code", every_seconds=HOUR
    )
    env = process_env | {"JOBS_SWEEP_SECONDS": "1"}
    row = "SELECT 1 FROM tailrace_jobs_schedule WHERE id = %s FOR UPDATE"
    with held(row, obsolete.pk), beat(env, log):
        wait_until(ticked)
        wait_until(lambda: Pulse.objects.filter(pk="sweep").exclude(by=""), what="a sweep")
        assert not Schedule.objects.retired().filter(pk=obsolete.pk)
    with beat(env, log):
        wait_until(lambda: Schedule.objects.retired().filter(pk=obsolete.pk))


def test_another_process_ticks_when_one_is_stopped(process_env, log, tmp_path) -> None:
    second = tmp_path / "second.log"
    with (
        worker(process_env, ["test.work"], log=log) as one,
        worker(process_env, ["test.work"], log=second) as two,
    ):
        tick = wait_until(ticked, 30)
        first, heir = (one, two) if one.node in tick.by else (two, one)
        first.signal(signal.SIGSTOP)
        wait_until(lambda: heir.node in Pulse.objects.get(pk="tick").by, 30)
        ticks_again()
        first.signal(signal.SIGCONT)


def test_a_locked_queue_delays_no_other(process_env, log) -> None:
    with worker(process_env, ["test.work"], log=log), transaction.atomic():
        Queue.objects.select_for_update().get(pk="test.other")
        retried = enqueue_elsewhere()
        wait_until(lambda: Job.objects.get(pk=retried).state == "failed", 60, "three attempts")


def enqueue_elsewhere() -> int:
    """Commit a job from another connection."""
    ids: list[int] = []

    def work() -> None:
        enqueue(Other, {}, delay=0.5)
        ids.append(enqueue(Working, {"do": "retry", "seconds": 1}) or 0)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    return ids[0]


def test_upkeep_goes_on_during_a_warm_shutdown(process_env, log, tmp_path) -> None:
    end = tmp_path / "end"
    env = process_env | {"SHUTDOWN_TIMEOUT": "600"}
    with worker(env, ["test.work"], log=log) as stopped:
        enqueue(Working, {"do": "wait", "note": str(end)})
        wait_until(Effect.objects.exists, what="the call has begun")
        stopped.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "Warm shutdown" in stopped.output)
        ticks_again()
        assert running()
        end.touch()
        assert stopped.process.wait(PATIENCE) == 0
    assert sessions() == 0


SILENT_BROKER = """
import time, django
django.setup()
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.upkeep import upkeep
upkeep.start("here")
time.sleep(3600)
"""


def test_a_hanging_broker_delays_no_rescue(process_env, log) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        env = process_env | {"BROKER_URL": url}
        with process(env, log, "-c", SILENT_BROKER):
            enqueue(Working, {}, delay=1)
            silent.settimeout(PATIENCE)
            client, _address = silent.accept()
            client.settimeout(PATIENCE)
            assert client.recv(10_000)  # the message is on its way, and gets no answer
            lost = enqueue(Poison)
            Job.objects.filter(pk=lost).update(
                state="running", attempt=1, claim_no=1, lease_until="2020-01-01T00:00Z"
            )
            wait_until(lambda: Job.objects.get(pk=lost).state == "pending", 8, "the rescue")
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(10_000)
            client.close()


# --- errors ---


def test_a_thread_that_dies_begins_again() -> None:
    died, worked = threading.Event(), threading.Event()

    def work() -> None:
        if not died.is_set():
            died.set()
            raise SystemExit
        worked.set()

    thread = UpkeepThread(
        "test", "me", [Duty("test", 0.1, work)], statement_seconds=5, lock_seconds=1
    )
    thread.start()
    try:
        assert worked.wait(PATIENCE)
    finally:
        thread.stop()
        thread.join(PATIENCE)


def test_every_statement_of_a_thread_has_limits() -> None:
    limits: list[str] = []
    done = threading.Event()

    def work() -> None:
        with connection.cursor() as cursor:
            for name in ("statement_timeout", "lock_timeout"):
                cursor.execute(f"SHOW {name}")
                limits.append(cursor.fetchone()[0])
        done.set()

    thread = UpkeepThread(
        "test", "me", [Duty("test", 0.1, work)], statement_seconds=7, lock_seconds=2
    )
    thread.start()
    try:
        assert done.wait(PATIENCE)
    finally:
        thread.stop()
        thread.join(PATIENCE)
    assert limits[:2] == ["7s", "2s"]


def test_lost_sessions_are_replaced(process_env, log) -> None:
    with worker(process_env, ["test.work"], log=log):
        for _ in range(3):
            ticks_again()
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name LIKE 'tailrace %'"
                )
                assert cursor.fetchone()[0] >= 1
        ticks_again()
