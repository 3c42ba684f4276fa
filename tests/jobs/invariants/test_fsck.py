"""fsck finds what is broken and repairs it, or says how to; afterwards all is clean."""

import pytest
from django.core.management import CommandError
from django.db import DatabaseError, IntegrityError, transaction

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import check_all, row_invariant
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.invariant import all_invariants
from tests.jobs.invariants.broken_state import (
    CASES,
    ago,
    attempt,
    change,
    change_queue,
    fsck,
    report,
    running_job,
    slot_without_job,
    sql,
    waiting_for_finished_job,
)
from tests.kit import another_transaction, claimed, end_older_transactions
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


BACKFILL = "jobs.events_have_their_jobs"


def test_every_check_has_a_case() -> None:
    core = [rule for rule in all_invariants() if type(rule).__module__.startswith("tailrace.jobs.")]
    assert {*CASES, BACKFILL} == {rule.name for rule in core}
    assert all(rule.description() and rule.advice for rule in core)


def test_consistent_state_is_clean(run_jobs, clock) -> None:
    publish([NewEvent(Happened, {"who": "w", "tags": ["a", "b"]})] * 3)
    parent = enqueue(Working)
    enqueue(Other, after=parent)
    enqueue(Working, {"do": "raise"})
    run_jobs()
    clock.step(60)
    run_jobs()
    enqueue(Working, delay=60)
    claimed("test.work")
    status, text = fsck()
    assert (status, text) == (0, f"{len(all_invariants())} checks: clean\n")


@pytest.mark.django_db(transaction=True)
def test_a_handler_deployed_later_is_found_and_repaired(monkeypatch) -> None:
    monkeypatch.setattr("tests.sandbox.handlers.Log.backfill", 86_400)
    publish(NewEvent(Happened, {"who": "w"}))
    Event.objects.update(recorded_at=ago(600))
    Job.objects.filter(handler="test.log").delete()
    end_older_transactions()
    assert report()[BACKFILL]["ids"] == ["test.log"]
    assert fsck("--fix")[0] == 0
    assert Job.objects.filter(handler="test.log").count() == 1


# The repair of this one begins when its transaction has committed.
COMMITS = {"queues.asleep": [pytest.mark.django_db(transaction=True)]}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=COMMITS.get(name, [])) for name in CASES]
)
def test_each_case_is_found_and_repaired_or_explained(name: str) -> None:
    case = CASES[name]
    key = case.create()
    status, text = fsck("--kind", name)
    assert status == 1
    assert f"{name}: 1 found" in text, text
    [found] = report("--kind", name).values()
    assert (found["kind"], found["ids"]) == (name, [key])
    assert found["advice"] in text
    assert report().keys() == {name, *case.also}
    status, text = fsck("--fix")
    assert status == (0 if case.repaired else 1), text
    assert ("  repaired 1: " in text) == case.repaired
    assert fsck()[0] == status


def test_repaired_jobs_run() -> None:
    unleased = running_job(lease_until=None)
    unlaned = CASES["jobs.no_lane"].create()
    child = waiting_for_finished_job()
    fsck("--fix")
    assert (Job.objects.get(pk=unleased).state, Attempt.objects.get().outcome) == (
        "pending",
        "lost",
    )
    assert [job.id for job in claimed("test.fair")] == [unlaned]
    assert [job.id for job in claimed("test.other")] == [child]


def test_a_claim_number_behind_its_attempts_is_repaired(run_jobs, clock) -> None:
    id = change(enqueue(Working, {"do": "raise"}))
    attempt(id, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        run_jobs("test.work")
    assert fsck("--fix")[0] == 0
    Job.objects.filter(pk=id, state="running").update(state="pending", lease_until=None)
    assert run_jobs("test.work") == 1
    assert set(Attempt.objects.values_list("claim_no", flat=True)) == {1, 2}


# --- what the database itself forbids -------------------------------------------------------------


def test_constraints_prevent_what_fsck_does_not_check() -> None:
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    enqueue(Working, unique_key="k")
    other, job = enqueue(Working), enqueue(Working)
    log = Job.objects.get(event=event.id, handler="test.log").pk
    attempt(job, 1)
    slot = slot_without_job()
    for refused in (
        lambda: change(other, event_id=event.id, handler="test.log"),
        lambda: change(other, unique_key="k"),
        lambda: change(log, priority=7),
        lambda: change(log, attempt=-1),
        lambda: change(log, state=None),
        lambda: attempt(job, 1),
        lambda: change_queue("test.work", rate_limit=-1),
        lambda: sql(
            "INSERT INTO tailrace_jobs_slot SELECT * FROM tailrace_jobs_slot WHERE id = %s", slot
        ),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            refused()


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kind", "jobs.no_lan"], "did you mean 'jobs.no_lane'"),
        (["--since", "yesterday"], "--since 'yesterday' is not a duration such as 2h or 7d"),
        (["--since", "0h"], "is not a duration"),
        (["--show", "-1"], "must not be negative"),
    ],
)
def test_wrong_arguments_end_with_2(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError) as wrong:
        call_subcommand("fsck", *arguments)
    assert wrong.value.returncode == 2
    assert words in str(wrong.value)


def test_a_report_shows_some_ids_and_counts_all() -> None:
    ids = [change(enqueue(Working), finished_at=ago(5)) for _ in range(15)]
    text = fsck("--show", "3")[1]
    assert "jobs.unfinished_with_time: 15 found" in text
    assert f"  {ids[0]}, {ids[1]}, {ids[2]} and 12 more" in text


def test_the_checks_are_listed() -> None:
    status, text = fsck("--list")
    assert (status, len(text.splitlines())) == (0, len(all_invariants()))


def test_a_check_that_fails_is_not_clean_others_still_run(monkeypatch) -> None:
    monkeypatch.setattr(
        "tailrace.jobs.platform.invariants.queues.TokensAreValid.condition", "1 / 0 = 1"
    )
    running_job(lease_until=None)
    status, text = fsck()
    assert status == 1
    assert "queues.tokens: the check stopped: DataError: division by zero" in text
    assert "jobs.running_without_lease: 1 found" in text


def test_what_an_app_declares_is_checked_too() -> None:
    names = [line.partition(":")[0] for line in fsck("--list")[1].splitlines()]
    assert {"photos.uploads_end", "subscriptions.digests_are_owed"} <= set(names)
    assert fsck("--fix", "--kind", "photos.uploads_end") == (0, "1 checks: clean\n")


@pytest.mark.django_db(transaction=True)
def test_a_locked_row_is_named_and_others_are_repaired() -> None:
    locked, *others = [change(enqueue(Working), finished_at=ago(5)) for _ in range(3)]
    dead = attempt(10**9, 1)
    with another_transaction("SELECT FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", locked):
        status, text = fsck("--fix")
        assert not Attempt.objects.filter(pk=dead).exists()
        cleared = Job.objects.filter(finished_at=None).values_list("id", flat=True)
        assert sorted(cleared) == others
    assert status == 1
    assert "  repaired 2: the finish time is removed" in text
    assert f"  not repaired 1: {locked}" in text
    assert "  locked by other transactions: 1; run fsck again" in text
    assert fsck("--fix")[0] == 0


@pytest.mark.django_db(transaction=True)
def test_a_locked_table_stops_its_checks_alone(monkeypatch) -> None:
    monkeypatch.setattr(row_invariant, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(check_all, "LOCK_SECONDS", 0.2)
    change(enqueue(Working), finished_at=ago(5))
    with another_transaction("LOCK TABLE tailrace_jobs_attempt IN ACCESS EXCLUSIVE MODE"):
        status, text = fsck()
    assert status == 1
    assert "attempts.job_missing: the check stopped: it waited too long for a lock" in text
    assert "jobs.unfinished_with_time: 1 found" in text


def test_batches_reach_every_row(monkeypatch) -> None:
    monkeypatch.setattr("tailrace.jobs.engine.maintenance.sweeping.row_invariant.BATCH", 4)
    ids = [change(enqueue(Working), finished_at=ago(5)) for _ in range(10)]
    assert report("--show", "100")["jobs.unfinished_with_time"]["ids"] == ids
