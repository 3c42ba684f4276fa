"""When the sweeper checks which invariant, what it records, and what does not stop it."""

import socket
import subprocess
import threading
from datetime import timedelta

import pytest
from django.db import connection

from tailrace.db.clock import now as clock_now
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, QueueActivity, SweepRun
from tailrace.jobs.runtime.invariant import Invariant
from tests import forks
from tests.jobs.invariants.sweeping import CORE
from tests.kit import (
    PATIENCE,
    ROOT,
    another_transaction,
    at_once,
)
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def test_a_sweep_of_a_sound_state_writes_its_records_alone(
    clock, django_assert_num_queries
) -> None:
    enqueue(Working)
    sweep.sweep(CORE)
    before = rows()
    clock.step(1)
    runs = sweep.sweep(CORE)
    assert rows() == before | {
        "tailrace_jobs_sweeprun": before["tailrace_jobs_sweeprun"] + len(runs)
    }
    assert [(run.found, run.repaired) for run in runs] == [(0, 0)] * len(CORE)


def rows() -> dict[str, int]:
    """How many versions of rows each table of ours has ever had in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_stat_get_xact_tuples_inserted(oid)"
            " + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid)"
            " FROM pg_class WHERE relkind = 'r' AND relname ~ '^tailrace_(jobs|events)_'"
        )
        return dict(cursor.fetchall())


def test_only_what_is_due_is_checked(clock) -> None:
    assert {run.invariant for run in sweep.sweep()} >= set(CORE)
    assert not {run.invariant for run in sweep.sweep()} & set(CORE)
    clock.step(16)
    again = {run.invariant for run in sweep.sweep()}
    assert "jobs.lease_ended" in again
    assert "jobs.waits_for_missing" not in again
    clock.step(300)
    assert "jobs.waits_for_missing" in {run.invariant for run in sweep.sweep()}


@pytest.fixture
def invariants(monkeypatch):
    """Return `invariants(*rules)`, which sets the sweeper's invariants in this test."""

    def use(*rules: Invariant) -> None:
        monkeypatch.setattr(sweep, "all_invariants", lambda: list(rules))

    return use


class Sound(Invariant):
    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def find(self) -> list[int]:
        return []


class Select(Sound):
    """Its `find` is one statement."""

    def __init__(self, name: str, statement: str) -> None:
        super().__init__(name)
        self.statement = statement

    def find(self) -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute(self.statement)
        return []


class HalfDone(Sound):
    def find(self) -> list[int]:
        return [1]

    def repair(self, violations: object) -> int:
        enqueue(Working)
        raise RuntimeError("half done")


def test_an_invariant_that_raises_does_not_stop_others(invariants) -> None:
    invariants(Select("a", "SELECT 1/0"), HalfDone("b"), Sound("c"))
    runs = sweep.sweep()
    assert [run.outcome for run in runs] == ["error", "error", "checked"]
    assert "DivisionByZero" in runs[0].error or "division by zero" in runs[0].error
    assert (runs[1].found, runs[1].repaired, runs[1].error) == (1, 0, "RuntimeError: half done")
    assert not Job.objects.exists()
    assert SweepRun.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_hung_or_locked_invariant_does_not_stop_others(invariants, monkeypatch) -> None:
    monkeypatch.setattr(sweep, "STATEMENT_SECONDS", 3)
    monkeypatch.setattr(sweep, "LOCK_SECONDS", 0.2)
    invariants(
        Select("a", "SELECT pg_sleep(600)"),
        Select("b", "SELECT 1 FROM tailrace_jobs_queue WHERE name = 'test.work' FOR UPDATE"),
        Sound("c"),
    )
    with another_transaction(
        "SELECT 1 FROM tailrace_jobs_queue WHERE name = 'test.work' FOR UPDATE"
    ):
        runs = sweep.sweep()
    assert [run.outcome for run in runs] == ["error", "error", "checked"]
    assert runs[0].error == "a statement took too long and was cancelled"
    assert runs[1].error.startswith("it waited too long for a lock of another transaction")
    assert [run.outcome for run in SweepRun.objects.order_by("id")] == ["error", "error", "checked"]


def test_the_oldest_check_comes_first_and_none_is_starved(invariants, monkeypatch, clock) -> None:
    rules = [Sound(name) for name in "abc"]
    invariants(*rules)
    monkeypatch.setattr(sweep, "SWEEP_SECONDS", -1)  # no time is left
    assert sweep.sweep() == []
    monkeypatch.undo()
    invariants(*rules)
    assert sweep.check(rules[0]).outcome == "checked"
    clock.step(1)
    assert sweep.check(rules[2]).outcome == "checked"
    clock.step(100)
    assert [run.invariant for run in sweep.sweep()] == ["b", "a", "c"]


def test_checks_that_find_nothing_are_one_row(invariants, clock) -> None:
    invariants(Sound("a"))
    (first,) = sweep.sweep()
    clock.step(100)
    (again,) = sweep.sweep()
    assert (again.pk, again.checks) == (first.pk, 2)
    assert again.started_at > first.started_at
    invariants(HalfDone("a"))
    clock.step(100)
    (failed,) = sweep.sweep()
    clock.step(100)
    invariants(Sound("a"))
    (sound,) = sweep.sweep()
    assert [run.pk for run in SweepRun.objects.order_by("id")] == [first.pk, failed.pk, sound.pk]


def test_a_run_in_the_future_defers_no_check(invariants, clock) -> None:
    invariants(Sound("a"))
    clock.step(3600)
    sweep.sweep()
    clock.step(-3600)
    assert len(sweep.sweep()) == 1


@pytest.mark.django_db(transaction=True)
def test_no_queue_is_locked_while_the_broker_hangs(process_env, tmp_path) -> None:
    enqueue(Working)
    past = clock_now() - timedelta(minutes=5)
    Job.objects.update(due_at=past)
    QueueActivity.objects.filter(name="test.work").update(awake=False, awake_at=past)
    with socket.create_server(("127.0.0.1", 0)) as broker:
        broker.settimeout(PATIENCE)
        url = f"redis://127.0.0.1:{broker.getsockname()[1]}/0"
        code = (
            "from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep;"
            "sweep(['queues.asleep'])"
        )
        process = forks.Fork(
            ["manage.py", "shell", "--no-imports", "-c", code],
            cwd=ROOT,
            env=process_env | {"BROKER_URL": url, "JOBS_WAKE": "inline"},
            stdout=subprocess.DEVNULL,
        )
        try:
            connected, _address = broker.accept()  # it never answers
            free = "SELECT 1 FROM tailrace_jobs_queueactivity FOR UPDATE NOWAIT"
            with connected, another_transaction(free):
                assert process.poll() is None
            assert QueueActivity.objects.get(name="test.work").awake, "committed before"
        finally:
            process.kill()
            process.wait(PATIENCE)


@pytest.mark.django_db(transaction=True)
def test_of_two_sweeps_at_once_one_is_skipped(invariants) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(Sound):
        def find(self) -> list[int]:
            entered.set()
            assert leave.wait(PATIENCE)
            return []

    invariants(Slow("slow"))

    def work(number: int) -> str:
        if number == 0:
            return sweep.check(Slow("slow")).outcome
        assert entered.wait(PATIENCE)
        outcome = sweep.check(Slow("slow")).outcome
        leave.set()
        return outcome

    assert at_once(2, work) == ["checked", "skipped"]
    assert sorted(SweepRun.objects.values_list("outcome", flat=True)) == ["checked", "skipped"]
