"""A plan's table is edited, a domain is installed: the schedules follow, by jobs and by repairs."""

from collections.abc import Callable

import pytest

from tailrace.jobs.models import Job, Queue, Schedule
from tailrace.subscriptions.invariants.plans import (
    GraceIsOver,
    PlanHandlersAreKnown,
    PlansAreRewritten,
    PlanSchedulesAll,
    PlanSchedulesHaveSubscription,
    PlanSchedulesInTurn,
)
from tailrace.subscriptions.models import Plan, PlanJob, PlanSubscription
from tailrace.subscriptions.plans import rewrite, status
from tests.subscriptions.plans.kit import (
    HOME,
    SCAN,
    crons,
    make_plans,
    schedule,
    schedules,
    subscribe,
)

pytestmark = pytest.mark.django_db
NAME = rewrite.HANDLER


@pytest.fixture(autouse=True)
def plans() -> dict[str, Plan]:
    return make_plans()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "PIECE", 2)


def edit(name: str, **changes: str) -> Plan:
    """Edit the frequencies of a plan's jobs as the admin does."""
    plan = Plan.objects.get(name=name)
    rewrite.begin([plan.pk])
    for handler, frequency in changes.items():
        PlanJob.objects.filter(plan=plan, handler=f"test.{handler}").update(frequency=frequency)
    return plan


def test_an_edited_plan_rewrites_all_its_subscriptions(run_jobs: Callable, small_pieces) -> None:
    rows, other = [subscribe("basic") for _ in range(5)], subscribe("plus")
    before = crons(other)
    kept = {row.pk: schedule(row, HOME).next_run_at for row in rows}
    plan = edit("basic", plan_scan="daily")
    run_jobs(NAME)
    for row in rows:
        assert crons(row) == {SCAN: "0 1 * * *", HOME: "0 1 10 * *"}
        assert schedule(row, HOME).next_run_at == kept[row.pk]
    assert crons(other) == before
    plan.refresh_from_db()
    assert plan.rewrite_after is None


def test_an_edit_meanwhile_begins_again(small_pieces) -> None:
    rows = [subscribe("basic") for _ in range(5)]
    plan = edit("basic", plan_scan="daily")
    assert rewrite.rewrite_piece(plan.pk) == 2
    assert Plan.objects.get(pk=plan.pk).rewrite_after == rows[1].pk
    edit("basic", plan_scan="weekly")
    while rewrite.rewrite_piece(plan.pk):
        pass
    assert {crons(row)[SCAN] for row in rows} == {"0 1 * * 3"}


def test_a_lost_job_is_made_again(run_jobs: Callable) -> None:
    row = subscribe("basic")
    plan = edit("basic", plan_scan="daily")
    assert PlansAreRewritten().find() == []
    Job.objects.all().delete()
    assert PlansAreRewritten().find() == [plan.pk]
    assert PlansAreRewritten().repair([plan.pk]) == 1
    run_jobs(NAME)
    assert crons(row)[SCAN] == "0 1 * * *"
    assert PlansAreRewritten().find() == []


def test_a_domain_that_is_installed_later_gets_its_schedules(run_jobs: Callable) -> None:
    PlanJob.objects.create(
        plan=Plan.objects.get(name="basic"), handler="test.absent", frequency="daily"
    )
    PlanJob.objects.filter(handler=SCAN).update(installed=False)
    row = subscribe("basic")
    assert set(crons(row)) == {HOME}
    invariant = PlanHandlersAreKnown()
    wrong = list(invariant.find())
    assert len(wrong) == 3, "of all plans"
    assert invariant.repair(wrong) == 3
    run_jobs(NAME)
    assert set(crons(row)) == {HOME, SCAN}
    assert invariant.find() == []


def test_a_domain_that_is_removed_leaves_no_schedules(run_jobs: Callable, clock) -> None:
    row = subscribe("basic")
    Queue.objects.filter(name=SCAN).update(retired_at=clock.now())
    assert PlanHandlersAreKnown().repair(PlanHandlersAreKnown().find()) == 3
    run_jobs(NAME)
    assert set(crons(row)) == {HOME}


def test_a_handler_that_takes_no_account_is_not_installed() -> None:
    plan = Plan.objects.get(name="basic")
    PlanJob.objects.create(plan=plan, handler="test.batch", frequency="daily")
    assert PlanHandlersAreKnown().find() == []


@pytest.mark.parametrize("invariant", [PlanSchedulesInTurn, PlanSchedulesAll])
def test_a_schedule_that_was_changed_or_deleted_is_put_back(invariant: type) -> None:
    right, changed, short, odd = (subscribe("plus") for _ in range(4))
    before = crons(right)
    schedules(changed).filter(handler=SCAN).update(cron="0 5 * * *")
    schedules(short).filter(handler=HOME).delete()
    Schedule.objects.create(
        name=f"plan:{odd.pk}:test.work",
        handler="test.work",
        owner=f"plan:{odd.pk}",
        cron="0 1 * * *",
    )
    rule = invariant()
    wrong = sorted(rule.find())
    assert wrong == [changed.pk, short.pk, odd.pk]
    assert rule.confirm(wrong) == wrong
    assert rule.repair(wrong) == 3
    assert [crons(row) for row in (changed, short, odd)] == [before] * 3
    assert list(rule.find()) == []


def test_each_subscription_has_its_turn(clock) -> None:
    rows = [subscribe("basic") for _ in range(5)]
    schedules(rows[3]).delete()
    rule = PlanSchedulesInTurn()
    rule.limit = 2
    turns = []
    for _ in range(3):
        turns.append(rule.find())
        clock.step(rule.every)
    assert sorted(turns) == [[], [], [rows[3].pk]]


def test_schedules_of_a_row_that_was_deleted_past_the_code_are_found() -> None:
    row, other = subscribe("basic"), subscribe("basic")
    row.changes.all()._raw_delete("default")
    PlanSubscription.objects.filter(pk=row.pk)._raw_delete("default")
    rule = PlanSchedulesHaveSubscription()
    assert list(rule.find()) == [f"plan:{row.pk}"]
    assert rule.repair(list(rule.find())) == 2
    assert list(rule.find()) == []
    assert len(crons(other)) == 2


def test_the_sweeper_ends_the_grace(clock, settings) -> None:
    settings.PLAN_GRACE_DAYS = 2
    row = subscribe("basic")
    status.mark_past_due([row.pk])
    assert GraceIsOver().find() == []
    clock.step(2 * 86_400 + 1)
    assert GraceIsOver().repair(GraceIsOver().find()) == 1
    assert crons(row) == {}
