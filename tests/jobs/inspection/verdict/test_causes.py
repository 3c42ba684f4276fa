"""Each cause of the verdict is found when it is there, with its figures, and not when it is not."""

from copy import copy
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.db import clock
from tailrace.jobs.destinations import breaker
from tailrace.jobs.engine.maintenance.pruning import history
from tailrace.jobs.models import Attempt, Breaker, FailureGroup, Job, Pulse, Queue, Schedule
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.verdict.causes.engines import disk_full
from tests.jobs import operators

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("system")]
TRIM = operators.Trim.name


def causes() -> dict[str, str]:
    """Return the words of each cause by its code."""
    return {cause.code: cause.words for cause in verdict.work_out().causes}


def mend(code: str, subject: str) -> str:
    """Press the button of a cause, as a user called ada."""
    check = verdict.check_of(code)
    assert check is not None
    return check.mend(User.objects.create_user("ada"), subject)


def test_a_system_without_trouble_is_healthy() -> None:
    operators.runs(101)
    assert causes() == {}
    assert verdict.current().status == "healthy"


def test_all_processes_are_busy() -> None:
    job, _ = operators.runs(101, 90), operators.due()
    assert causes() == {"pool_full": causes()["pool_full"]}
    words = causes()["pool_full"]
    assert words.startswith("The only worker process has been busy since ")
    assert f": 1 × {TRIM} (job {job.pk} for 2 min). 1 due job of {TRIM} waits" in words


def test_a_free_process_is_no_full_pool() -> None:
    operators.due(5)
    Pulse.objects.filter(name__startswith="worker:").delete()
    operators.worker("w@test", children=(101, 102))
    operators.runs(101, 90)
    assert causes() == {}
    operators.runs(102, 1)  # claimed a moment ago: it may end at once
    assert causes() == {}
    operators.runs(102, 9)
    assert list(causes()) == ["pool_full"]
    operators.worker("x@test", pid=2, children=(201,))
    assert causes() == {}


def test_a_queue_without_worker() -> None:
    operators.due(11)
    Pulse.objects.filter(name__startswith="worker:").update(queues=["test.work"])
    assert causes() == {"queue_unserved": f"1 queue has due jobs and no worker: {TRIM}."}
    [cause] = verdict.work_out().causes
    assert cause.command == f"celery -A tailrace.config worker -n worker1@%h -Q {TRIM}"


def test_a_queue_that_its_workers_do_not_get_on_with() -> None:
    operators.due(20)
    assert causes() == {}
    operators.due(40)
    assert "no job was claimed for 40 s" in causes()["queue_unserved"]


def test_a_late_tick() -> None:
    Pulse.objects.filter(pk="tick").update(at=clock.now() - timedelta(minutes=3))
    words = "The last tick was 3 min ago, by w@test, so retries, schedules and the sweeper do not"
    assert causes() == {"tick_late": f"{words} run."}
    [cause] = verdict.work_out().causes
    assert "Workers are alive" in cause.advice


def test_a_paused_queue_that_jobs_wait_for() -> None:
    pause(TRIM, "bob")
    assert causes() == {}
    operators.due(2)
    words = causes()["queue_paused"]
    assert words.startswith(f"{TRIM} was paused by bob at ")
    assert words.endswith("); 1 due job waits.")
    assert mend("queue_paused", TRIM) == f"{TRIM}: resumed."
    assert not Queue.objects.get(pk=TRIM).paused
    assert LogEntry.objects.get().change_message == "resumed"
    assert causes() == {}


def test_a_schedule_that_is_no_longer_declared() -> None:
    Schedule.objects.create(
        name="lamp", handler=TRIM, owner="code", every_seconds=60, enabled=False,
        retired_at=clock.now(),
    )  # fmt: skip
    assert causes()["schedule_gone"].startswith("The schedule lamp has not run since ")
    assert mend("schedule_gone", "lamp") == "lamp: scheduled again."
    assert Schedule.objects.get(name="lamp").enabled
    assert LogEntry.objects.get().object_repr == "lamp"
    assert causes() == {}


def test_a_declared_schedule_that_was_removed(settings) -> None:
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:1"}
    operators.register_handlers()
    row = Schedule.objects.of_code().filter(handler="builds.poll").get()
    row.delete()
    words = f"The schedule {row.name} is missing: the code declares it, but its row was deleted."
    assert causes() == {"schedule_gone": words}
    mend("schedule_gone", row.name)
    again = Schedule.objects.get(name=row.name)
    assert (again.handler, again.every_seconds, again.cron) == (
        row.handler, row.every_seconds, row.cron,
    )  # fmt: skip
    assert causes() == {}


def test_a_destination_that_cannot_be_reached() -> None:
    name = f"{TRIM}:https://down.example.org"
    breaker.record_failure(name, "refused", at_once=False)
    assert causes() == {}, "one error of a destination that answers"
    breaker.record_failure(name, "refused", at_once=True)
    [cause] = verdict.work_out().causes
    assert cause.words.startswith(f"A destination of {TRIM} cannot be reached: 2 failures in a row")
    assert "down.example.org" not in cause.words
    assert cause.private == f"{name}: refused"
    assert "the circuit breaker is closed" in mend("breaker_open", name)
    assert Breaker.objects.get().open_until is None
    assert causes() == {}


def test_a_destination_that_was_down_long_ago() -> None:
    breaker.record_failure("a:b", "refused", at_once=True)
    Breaker.objects.update(failed_at=clock.now() - timedelta(hours=2))
    assert causes() == {}


def test_jobs_that_failed_for_good() -> None:
    old = clock.now() - timedelta(hours=2)
    operators.job(finished_at=old)
    assert causes() == {}
    job = operators.job(finished_at=clock.now(), attempt=3, error="the secret oil is out")
    Attempt.objects.create(job=job, claim_no=1, outcome="failed", error_class="OilError")
    words = causes()["jobs_failed"]
    assert words.startswith(
        f"1 job of {TRIM} failed permanently in the last hour. The last is job {job.pk}, after 3"
        " attempts with OilError, at "
    )
    assert "secret" not in words


def test_an_old_failure_comes_after_all_other_causes() -> None:
    """It gets no worse by waiting."""
    operators.job(finished_at=clock.now() - timedelta(minutes=5))
    Schedule.objects.create(
        name="lamp", handler=TRIM, owner="code", every_seconds=60, enabled=False,
        retired_at=clock.now(),
    )  # fmt: skip
    operators.worker("old@test", pid=2, code="0123456789ab", seen=20, stopping=False)
    assert verdict.work_out().codes[-1] == "jobs_failed"
    assert [cause.fades for cause in verdict.work_out().causes] == [False] * 3
    Job.objects.filter(state="failed").update(finished_at=clock.now() - timedelta(minutes=30))
    verdicts = verdict.work_out().causes
    assert [cause.fades for cause in verdicts] == [False, False, True]
    assert verdicts[-1].code == "jobs_failed"


def test_what_gets_worse_by_waiting_comes_first() -> None:
    codes = [check.code for check in verdict.checks()]
    assert codes[-1] == "jobs_failed"
    worse = ("disk_full", "connections_taken", "worker_silent", "snapshot_held", "calls_hang")
    assert all(codes.index(code) < codes.index("pool_full") for code in worse)


def test_failures_are_named_by_kind_and_silenced_by_their_button() -> None:
    for id, error in ((7, "OilError"), (8, "WickError")):
        group = FailureGroup.objects.create(id=id, handler=TRIM, error_class=error)
        job = operators.job(finished_at=clock.now(), failure_group=group)
        Attempt.objects.create(job=job, claim_no=1, outcome="failed", error_class=error)
    first, second = verdict.work_out().causes
    assert (first.subject, second.subject) == ("7", "8")
    assert "with OilError" in first.words
    assert first.action is not None
    assert first.action.query == "state=failed&failure=7"
    assert ": silenced until " in mend("jobs_failed", "7")
    assert [cause.subject for cause in verdict.work_out().causes] == ["8"]
    entry = LogEntry.objects.get()
    assert entry.change_message.startswith("silenced until ")
    check = verdict.check_of("jobs_failed")
    assert check is not None
    for odd in ("9", "x", "9" * 30):
        assert check.mend(User.objects.get(), odd) == f"There is no kind of failure {odd}."


def test_failures_that_are_silenced_are_no_cause() -> None:
    group = FailureGroup.objects.create(id=7, silenced_until=clock.now() + timedelta(hours=1))
    operators.job(finished_at=clock.now(), failure_group=group)
    assert causes() == {}
    operators.job(finished_at=clock.now())
    assert causes()["jobs_failed"].startswith("1 job of ")


def test_the_broker_is_away(settings) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    assert causes() == {
        "broker_away": "The broker does not answer, so workers are not woken; no job is lost."
    }


def test_jobs_past_their_retention(settings) -> None:
    settings.JOBS_RETENTION_DAYS, settings.JOBS_FAILED_RETENTION_DAYS = 30, 90
    kept = Job(handler=TRIM, state="failed", finished_at=clock.now() - timedelta(days=60))
    Job.objects.bulk_create(copy(kept) for _ in range(150))
    operators.job("completed", finished_at=clock.now() - timedelta(days=30, hours=-1))
    history.move()
    assert causes() == {}
    operators.job("completed", finished_at=clock.now() - timedelta(days=32))
    assert list(causes()) == ["retention_behind"]


def test_a_disk_that_is_nearly_full(monkeypatch, settings, tmp_path) -> None:
    """That of our files, also before their folder is made; any disk is full by these limits."""
    settings.VAR_DIR = tmp_path / "not" / "yet"
    assert causes() == {}
    monkeypatch.setattr(disk_full, "LEAST_BYTES", 2**62)
    assert causes() == {}, "the lower limit counts"
    monkeypatch.setattr(disk_full, "LEAST_SHARE", 1.01)
    assert list(causes()) == ["disk_full"]
    assert "The disk of this web server is nearly full: " in causes()["disk_full"]


def test_finished_jobs_that_are_not_moved_to_the_history() -> None:
    operators.job("completed", finished_at=clock.now() - timedelta(hours=1))
    operators.job("failed", finished_at=clock.now() - timedelta(days=3))
    assert causes() == {}
    operators.job("completed", finished_at=clock.now() - timedelta(hours=3))
    assert list(causes()) == ["history_behind"]
    history.move()
    assert causes() == {}


def test_days_of_the_history_that_lack_their_partition(clock) -> None:
    history.make_partitions()
    clock.step(timedelta(days=history.DAYS_AHEAD - 1).total_seconds())
    assert "history_behind" not in causes()
    clock.step(timedelta(days=1).total_seconds())
    assert "has no partition for the days after" in causes()["history_behind"]
    history.make_partitions()
    assert "history_behind" not in causes()


def test_the_worst_cause_comes_first() -> None:
    pause(TRIM, "bob")
    operators.due()
    operators.job(finished_at=clock.now())
    Pulse.objects.filter(pk="tick").delete()
    assert verdict.work_out().codes == ["tick_late", "queue_paused", "jobs_failed"]


def test_a_database_that_does_not_answer_is_a_cause() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_jobs_pulse RENAME TO hidden_pulse")
    assert verdict.work_out().codes == ["database_away"]


def test_machines_get_a_verdict_that_is_a_few_seconds_old() -> None:
    assert verdict.current(60).healthy
    operators.job(finished_at=clock.now())
    with CaptureQueriesContext(connection) as statements:
        assert verdict.current(60).healthy
    assert not statements.captured_queries
    assert not verdict.current(-1).healthy


def test_the_verdict_costs_a_bounded_number_of_statements() -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as statements:
            verdict.work_out()
        return len(statements.captured_queries)

    cost()
    operators.runs(101, 90)
    before = cost()
    for number in range(30):
        operators.due()
        operators.job(finished_at=clock.now())
        breaker.record_failure(f"a:{number}", "refused", at_once=True)
    assert Job.objects.count() > 60
    assert cost() <= before + 1
    assert before <= 18
