"""The engine's connection is its own: what happens on a handler's does not reach it."""

import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from structlog.testing import capture_logs

from tailrace.db import clock, query
from tailrace.db.connections import ENGINE, engine
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.leases import lease
from tailrace.jobs.engine.leases.held import HeldClaim
from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job, Schedule
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import State
from tests.kit import PATIENCE, at_once, claimed, wait_until
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)


class ReplicaRouter:
    """Reads go to a replica, which knows nothing: here it does not even exist."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"


def renew_elsewhere(jobs: list[ClaimedJob]) -> int:
    def renew_as_engine(number: int) -> int:
        with engine():
            return renew(jobs)

    [renewed] = at_once(1, renew_as_engine)
    return int(renewed)


def leases() -> dict[int, Any]:
    return dict(Job.objects.values_list("id", "lease_until"))


def test_progress_in_a_transaction_stops_no_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Working, "claim_timeout", 15)
    enqueue_many(Working, [{}] * 10)
    jobs = claimed("test.work")
    held = HeldClaim(jobs[0].handler, jobs)
    held.begin_group(list)
    with lease.watched(held), transaction.atomic():
        jobs[0].progress(1, 2, "half")
        assert Job.objects.get(pk=jobs[0].id).progress_done == 1
        first = leases()
        wait_until(
            lambda: all(until > first[id] for id, until in leases().items()),
            what="a renewal of all ten, while the transaction is open",
        )
        assert rescue.rescue() == 0
    with engine():
        settled = settle.settle([Verdict(job, State.COMPLETED) for job in jobs])
    assert len(settled) == 10


def test_a_locked_job_does_not_keep_the_others_from_renewal() -> None:
    enqueue_many(Working, [{}] * 10)
    jobs = claimed("test.work")
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=jobs[3].id)
        assert renew_elsewhere(jobs) == 9
    assert renew_elsewhere(jobs) == 10


def test_a_handler_runs_on_the_default_connection(scripted) -> None:
    pids: list[int] = []

    def look(job: ClaimedJob) -> None:
        [(pid,)] = query.query("SELECT pg_backend_pid()")
        [(limit,)] = query.query("SELECT current_setting('statement_timeout')")
        assert limit == "0"
        pids.append(pid)

    scripted("test.work", look)
    enqueue(Working)
    assert drain("test.work") == 1
    assert pids == [connection.connection.info.backend_pid]
    assert pids != [connections[ENGINE].connection.info.backend_pid]


def test_a_handlers_session_does_not_reach_the_engine(scripted) -> None:
    def spoil(job: ClaimedJob) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET search_path = pg_catalog")
            cursor.execute("SET default_transaction_read_only = on")

    scripted("test.work", spoil)
    enqueue(Working)
    assert drain("test.work") == 1
    connection.close()
    assert Job.objects.get().state == "completed"


def test_a_claim_that_waits_too_long_ends_the_drain(caplog: pytest.LogCaptureFixture) -> None:
    enqueue(Working)
    with transaction.atomic():
        query.execute("LOCK TABLE tailrace_jobs_job")
        assert drain("test.work") == 0
    assert "drain.timed_out" in caplog.text
    assert drain("test.work") == 1


def test_a_settlement_waits_for_a_lock_on_its_connection() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    held, release, pids = threading.Event(), threading.Event(), set()

    def hold(number: int) -> None:
        with transaction.atomic():
            Job.objects.select_for_update().get()
            held.set()
            assert release.wait(PATIENCE)

    def once_refused(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        pids.add(context["connection"].connection.info.backend_pid)
        try:
            return execute(sql, params, many, context)
        except OperationalError:
            release.set()
            raise

    holder = threading.Thread(target=at_once, args=(1, hold))
    holder.start()
    assert held.wait(PATIENCE)
    with engine(), connections[ENGINE].execute_wrapper(once_refused):
        assert settle.settle([Verdict(job, State.COMPLETED)]) == {job.id: "completed"}
    holder.join(PATIENCE)
    assert release.is_set()
    assert len(pids) == 1


def test_nothing_of_the_engine_reads_from_a_replica(settings: Any, run_jobs: Any) -> None:
    Schedule.objects.create(
        name="s", handler="test.other", every_seconds=3600, next_run_at=clock.now()
    )
    settings.DATABASE_ROUTERS = [f"{__name__}.{ReplicaRouter.__name__}"]
    publish(NewEvent(Happened, {"who": "w", "tags": ["a"]}))
    parent = enqueue(Working)
    enqueue(Working, after=parent)
    with capture_logs() as logs:
        tick.tick()
        core = [
            rule for rule in all_invariants() if type(rule).__module__.startswith("tailrace.jobs.")
        ]
        assert {run.error for run in sweep.sweep([rule.name for rule in core])} == {""}
    assert [line for line in logs if line["log_level"] in ("warning", "error")] == []
    assert run_jobs("test.log") == 1
    assert run_jobs("test.work") == 2
    assert run_jobs("test.other") == 1, "the slot of a schedule"
    settings.DATABASE_ROUTERS = []
    assert set(Job.objects.filter(handler="test.work").values_list("state")) == {("completed",)}
