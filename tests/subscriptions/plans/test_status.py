"""Moves of subscriptions: enrol, past due, grace, cancel, resume, and their audit trail."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.models import Schedule
from tailrace.subscriptions.models import Plan, PlanSubscription, Preferences
from tailrace.subscriptions.plans import status
from tailrace.subscriptions.plans.enrolment import Enrolment, EnrolmentError, enrol, enrol_many
from tailrace.web.accounts.deletion import delete_account, request_deletion
from tests.kit import at_once
from tests.subscriptions.plans.kit import (
    crons,
    let_run,
    make_plans,
    now_is,
    schedule,
    schedules,
    subscribe,
    table_of,
)
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture(autouse=True)
def plans() -> Iterator[dict[str, Plan]]:
    return make_plans()


def trail(row: PlanSubscription) -> list[str]:
    return [str(change) for change in row.changes.order_by("pk")]


def test_the_jobs_of_who_is_past_due_run_until_the_grace_is_over(clock, settings) -> None:
    settings.PLAN_GRACE_DAYS = 3
    row = subscribe("plus")
    assert status.mark_past_due([row.pk]).changed == [row.pk]
    row.refresh_from_db()
    assert row.is_served
    assert row.grace_until is not None
    assert crons(row) == table_of("plus")
    clock.step(3 * DAY - 60)
    assert status.end_grace([row.pk]).changed == []
    clock.step(120)
    assert status.end_grace([row.pk]).changed == [row.pk]
    row.refresh_from_db()
    assert (row.status, row.grace_until, row.is_served) == ("past_due", None, False)
    assert crons(row) == {}
    status.change([row.pk], plan=Plan.objects.get(name="premium"))
    assert crons(row) == {}
    status.resume([row.pk])
    assert crons(row) == table_of("premium")
    assert trail(row) == [
        "enrolled: plan: plus",
        "past_due: its jobs run for 3 more days",
        "grace_ended: its jobs no longer run",
        "changed: plan: plus → premium",
        "resumed",
    ]


def test_a_move_that_is_not_possible_says_why() -> None:
    row, ids = subscribe(), [1_000_000]
    assert status.resume([row.pk]).refused == {row.pk: "it is active"}
    status.cancel([row.pk], reason="as asked")
    assert status.cancel([row.pk]).refused == {row.pk: "it is cancelled"}
    assert status.mark_past_due([row.pk]).refused == {row.pk: "it is cancelled"}
    assert status.change([row.pk], anchor_day=3).refused == {row.pk: "it is cancelled"}
    assert status.cancel(ids).refused == {ids[0]: "there is no such subscription"}
    status.resume([row.pk])
    assert status.change([row.pk], anchor_day=10).refused == {row.pk: "it already has these values"}
    assert trail(row) == ["enrolled: plan: basic", "cancelled: as asked", "resumed"]


def test_many_are_moved_in_few_statements() -> None:
    ids = [subscribe("premium").pk for _ in range(5)]
    others = [subscribe("basic").pk]
    with CaptureQueriesContext(connection) as statements:
        assert status.cancel(ids).changed == ids
    assert len(statements) < 20
    assert not Schedule.objects.filter(owner__in=[f"plan:{id}" for id in ids]).exists()
    assert Schedule.objects.filter(owner=f"plan:{others[0]}").count() == 2


def test_enrolling_takes_the_day_and_the_time_zone_of_the_account(clock) -> None:
    now_is(clock, "2027-01-20T22:00:00")
    ann = person("ann")
    Preferences.objects.create(user=ann, time_zone="Asia/Tokyo")
    row = enrol(Enrolment(ann.pk, "basic"))
    assert row is not None
    assert (row.anchor_day, row.time_zone) == (21, "Asia/Tokyo")
    assert enrol(Enrolment(ann.pk, "plus")) is None
    assert PlanSubscription.objects.get().plan.name == "basic"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"plan": "premum"}, "row 1: plan: no plan is called 'premum'; did you mean 'premium'?"),
        ({"anchor_day": 32}, "row 1: anchor_day: 32 is not between 1 and 31"),
        ({"time_zone": "Mars"}, "row 1: time_zone: 'Mars' is not a time zone"),
        ({"account": 99_999_999}, "row 1: account: there is no active user with this id"),
    ],
)
def test_a_row_that_cannot_be_enrolled_is_named_and_none_is(wrong: dict, words: str) -> None:
    good = Enrolment(person("ann").pk, "basic")
    bad = Enrolment(**{"account": person("bob").pk, "plan": "basic"} | wrong)
    with pytest.raises(EnrolmentError, match=words.replace("?", r"\?")):
        enrol_many([good, bad])
    assert not PlanSubscription.objects.exists()


def test_many_enrolments_and_the_same_again() -> None:
    User.objects.bulk_create(User(username=f"user-{n}") for n in range(300))
    rows = [Enrolment(pk, "premium") for pk in User.objects.values_list("pk", flat=True)]
    with CaptureQueriesContext(connection) as statements:
        result = enrol_many(iter(rows))
    assert len(statements) < 25
    assert len(result.subscriptions) == len(rows)
    assert Schedule.objects.filter(owner__startswith="plan:").count() == 3 * len(rows)
    again = enrol_many(rows)
    assert (again.subscriptions, len(again.subscribed_before)) == ([], len(rows))


@pytest.mark.django_db(transaction=True)
def test_many_changes_at_once_leave_the_schedules_of_the_last() -> None:
    row = subscribe()
    names = list(Plan.objects.values_list("name", flat=True))

    def move(number: int) -> None:
        match number % 5:
            case 0:
                status.cancel([row.pk])
            case 1:
                status.mark_past_due([row.pk])
            case 2:
                status.resume([row.pk])
            case _:
                status.change([row.pk], plan=Plan.objects.get(name=names[number % 3]))

    at_once(50, move)
    row.refresh_from_db()
    assert crons(row) == (table_of(row.plan.name) if row.is_served else {})
    status.resume([row.pk])
    assert crons(row) == table_of(row.plan.name)


def test_a_deleted_account_leaves_no_schedule() -> None:
    row, other = subscribe("premium"), subscribe()
    request_deletion(row.account)
    delete_account(row.account_id)
    assert not PlanSubscription.objects.filter(pk=row.pk).exists()
    assert not schedules(row).exists()
    assert crons(other) == table_of("basic")


def test_a_deleted_row_leaves_no_schedule_and_no_waiting_job(clock) -> None:
    row = subscribe("premium")
    let_run(clock, 2)
    assert schedule(row).last_run_at is not None
    row.delete()
    assert not Schedule.objects.filter(owner=f"plan:{row.pk}").exists()


def test_grace_is_never_longer_than_the_setting(clock, settings) -> None:
    settings.PLAN_GRACE_DAYS = 1
    row = subscribe()
    status.mark_past_due([row.pk])
    before = PlanSubscription.objects.get().grace_until
    clock.step(60)
    status.mark_past_due([row.pk])
    assert PlanSubscription.objects.get().grace_until == before
    assert before is not None
    assert before - clock.now() < timedelta(days=1)
