"""Brokers that fail, workers that die, and requests that end while their step is done."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tailrace.db.query import database_now
from tailrace.domains.protection.models import RemovalChange
from tailrace.domains.protection.services.removals import decisions, moves
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Attempt, Job
from tailrace.web.accounts.deletion import delete_account
from tests.kit import claimed, run_and_settle, verdicts_on
from tests.protection.kit import customer
from tests.protection.removals.kit import DAY, form_entry, history, now, started
from tests.servers.broker import page
from tests.servers.web import Response

pytestmark = pytest.mark.django_db

FAULTS = {
    "503": lambda request: Response(503),
    "cut": lambda request: Response(200, b"<form" + b" " * 5000, cut=100),
    "5 MB": lambda request: page("x" * 5_000_000),
    "an error of 200": lambda request: page("Error") if request.method == "POST" else None,
    "nothing": lambda request: page("") if request.method == "POST" else None,
}


def the_job() -> Job:
    return Job.objects.get(handler=moves.QUEUE)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_form_is_tried_four_times_and_then_left_to_a_person(
    broker, ann, run_removals, clock, fault
) -> None:
    broker.answer = FAULTS[fault]
    row = started(ann)
    clock.stop()
    for attempt, wait in enumerate((60, 300, 900), 1):
        run_removals()
        job = the_job()
        assert (job.state, job.attempt) == ("pending", attempt)
        seconds = (job.due_at - database_now()).total_seconds()
        assert 0.8 * wait - 1 <= seconds <= 1.2 * wait + 1
        assert now(row).state == "pending"
        clock.step(seconds + 1)
    run_removals()
    assert the_job().state == "failed"
    assert now(row).state == "needs_person"
    count = Attempt.objects.count()
    clock.step(30 * DAY)
    run_removals()
    assert Attempt.objects.count() == count, "there is no fifth"


def test_a_broker_that_asks_to_wait_is_sent_nothing_meanwhile(
    broker, ann, run_removals, clock
) -> None:
    broker.answer = lambda request: Response(429, headers={"Retry-After": "120"})
    started(ann)
    run_removals()
    other = started(customer("bob"))
    run_removals()
    broker.answer = lambda request: None
    clock.step(100)
    run_removals()
    assert broker.sent == []
    clock.step(200)
    run_removals()
    assert now(other).state == "awaiting_confirmation"


def test_a_broker_is_sent_so_many_requests_per_minute(broker, run_removals, rewrite, clock) -> None:
    rewrite(form_entry(broker, per_minute=6))
    clock.stop()
    for number in range(3):
        started(customer(f"user-{number}"))
    run_removals()
    assert len(broker.taken) == 1
    clock.step(40)
    run_removals()
    assert 1 < len(broker.taken) <= 3


def test_a_check_that_cannot_tell_is_no_removal(broker, ann, run_removals, clock) -> None:
    row = started(ann)
    run_removals()
    broker.answer = lambda request: page("We are being repaired")
    clock.step(3 * DAY + 60)
    for _ in range(4):
        run_removals()
        clock.step(1100)
    row = now(row)
    assert (row.state, row.checks) == ("awaiting_confirmation", 1)
    assert row.note == "the listing page does not show whether the person is listed"
    assert timedelta(days=9, hours=22) < row.next_at - database_now() <= timedelta(days=10)


def test_a_worker_killed_after_the_record_repeats_nothing(broker, ann, run_removals) -> None:
    row = started(ann)
    jobs = claimed(moves.QUEUE)
    list(verdicts_on(jobs))  # and it is never settled
    assert now(row).state == "awaiting_confirmation"
    Job.objects.filter(state="running").update(lease_until=database_now() - timedelta(minutes=5))
    rescue.rescue()
    Job.objects.filter(pk=jobs[0].id).update(due_at=database_now())
    run_removals()
    assert Job.objects.get(pk=jobs[0].id).state == "skipped"
    assert len(broker.sent) == 1
    assert history(row) == ["pending", "submitted", "awaiting_confirmation"]


def test_a_check_whose_worker_is_killed_after_the_record_counts_once(
    broker, ann, run_removals, clock
) -> None:
    row = started(ann)
    run_removals()
    broker.people.add("Ann Example")
    clock.step(3 * DAY + 60)
    [job] = claimed(moves.QUEUE)
    list(verdicts_on([job]))  # and it is never settled
    Job.objects.filter(pk=job.id).update(lease_until=database_now() - timedelta(minutes=5))
    rescue.rescue()
    Job.objects.filter(pk=job.id).update(due_at=database_now())
    run_removals()
    assert Job.objects.get(pk=job.id).state == "skipped"
    assert now(row).checks == 1


def test_of_two_workers_with_one_step_the_second_records_nothing(broker, ann) -> None:
    row = started(ann)
    stale = now(row)
    run_and_settle(claimed(moves.QUEUE))
    with pytest.raises(moves.MovedOn):
        moves.submitted(stale)
    assert history(row) == ["pending", "submitted", "awaiting_confirmation"]
    assert Job.objects.filter(handler=moves.QUEUE, state="pending").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_withdrawn_while_it_is_sent_stays_withdrawn(
    broker, ann, run_removals, clock
) -> None:
    row = started(ann)

    def withdraw(request) -> None:
        if request.method == "POST":
            decisions.withdraw(now(row), ann)
            connection.close()

    broker.before_answer = withdraw
    run_removals()
    assert now(row).state == "withdrawn"
    last = RemovalChange.objects.order_by("-pk").first()
    assert last.note == "submitted before the request ended"
    clock.step(90 * DAY)
    assert run_removals() == 0


def test_a_withdrawn_request_is_sent_nothing_and_forgets_the_person(
    broker, ann, run_removals
) -> None:
    row = started(ann)
    decisions.withdraw(now(row), ann)
    run_removals()
    assert broker.sent == []
    assert the_job().state == "cancelled"
    row = now(row)
    assert (row.state, row.person, row.next_at) == ("withdrawn", "", None)
    with pytest.raises(
        decisions.Refused, match="ended less than a day ago: start another one after"
    ):
        started(ann)


def test_an_account_deleted_meanwhile_leaves_nothing(broker, ann, run_removals) -> None:
    row = started(ann)
    job = the_job()
    User.objects.update(is_active=False)
    assert delete_account(ann.pk)
    run_removals()
    assert broker.sent == []
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not RemovalChange.objects.filter(request_id=row.pk).exists()


def test_one_request_at_a_broker_is_open(broker, ann) -> None:
    assert started(ann).pk == started(ann).pk
    assert Job.objects.filter(handler=moves.QUEUE).count() == 1


def test_nobody_reads_the_person_in_the_tables(broker, ann, run_removals) -> None:
    row = started(ann)
    run_removals()
    assert "Ann" not in now(row).person
    for job in Job.objects.filter(handler=moves.QUEUE):
        assert "Ann" not in f"{job.payload} {job.result} {job.error} {job.lane}"
