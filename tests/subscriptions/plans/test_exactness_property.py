"""Whatever happens to a subscription, its schedules are the table's, and no run is doubled or lost.

A reference tells when a run is owed: a job that has not run since its last regular time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st

from tailrace.db import clock as database_clock
from tailrace.db.query import database_now
from tailrace.jobs.engine.maintenance.ticking import schedules as tick
from tailrace.jobs.models import Job, Schedule
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans import schedules, status
from tailrace.subscriptions.plans.timing import NEAR, cron_of
from tests.examples import few_and_many
from tests.subscriptions.plans.kit import TABLE, make_plans, subscribe

pytestmark = pytest.mark.django_db
EXAMPLES = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
STEPS = st.one_of(
    st.tuples(st.just("plan"), st.sampled_from(sorted(TABLE))),
    st.tuples(st.just("day"), st.sampled_from([1, 10, 21, 31])),
    st.tuples(st.just("zone"), st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Auckland"])),
    st.tuples(st.sampled_from(["past_due", "grace", "cancel", "resume"]), st.just("")),
    st.tuples(st.just("hours"), st.sampled_from([0.4, 2, 13, 30, 8 * 24, 33 * 24])),
)


class Reference:
    """What the table and the steps say: nothing here is read from the schedules."""

    def __init__(self) -> None:
        self.plan, self.day, self.zone, self.state = "basic", 10, "UTC", "active"
        self.changed_at = database_now()

    def table(self) -> dict[str, tuple[str, str]]:
        """Return cron expression and time zone by handler."""
        if self.state not in ("active", "past_due"):
            return {}
        jobs = TABLE[self.plan].items()
        return {name: (cron_of(frequency, self.day), self.zone) for name, frequency in jobs}

    def follow(self, kind: str, value: Any) -> None:
        before = (self.table(), self.state)
        if self.state != "cancelled" and kind in ("plan", "day", "zone"):
            setattr(self, kind, value)
        moves = {
            ("active", "past_due"): "past_due",
            ("past_due", "grace"): "stopped",
            ("past_due", "resume"): "active",
            ("stopped", "resume"): "active",
            ("cancelled", "resume"): "active",
        }
        self.state = moves.get((self.state, kind), self.state)
        if kind == "cancel":
            self.state = "cancelled"
        if before != (self.table(), self.state):
            self.changed_at = database_now()


def act(row: PlanSubscription, kind: str, value: Any) -> None:
    """Do the same to the subscription."""
    ids = [row.pk]
    match kind:
        case "plan":
            status.change(ids, plan=Plan.objects.get(name=value))
        case "day":
            status.change(ids, anchor_day=value)
        case "zone":
            status.change(ids, time_zone=value)
        case "past_due":
            status.mark_past_due(ids)
        case "grace":
            PlanSubscription.objects.filter(grace_until__isnull=False).update(
                grace_until=database_now()
            )
            status.end_grace(ids)
        case "cancel":
            status.cancel(ids)
        case "resume":
            status.resume(ids)


def pass_time(hours: float) -> None:
    """Tick at each time at which a schedule is due, as the tick does each second. The jobs of one
    tick are done before the next; those of the last one wait."""
    until = database_now() + timedelta(hours=hours)
    while True:
        due = Schedule.objects.order_by("next_run_at").values_list("next_run_at", flat=True).first()
        if due is None or due > until:
            break
        database_clock.offset += max((due - database_now()).total_seconds(), 0) + 0.001
        Job.objects.filter(state="pending").update(state="completed", finished_at=database_now())
        tick.run_due()
    database_clock.offset += max((until - database_now()).total_seconds(), 0)


class Runs:
    """The runs of each job, and the schedule by which each came."""

    def __init__(self) -> None:
        self.last: dict[str, datetime] = {}
        self.seen: set[int] = set()

    def check(self) -> None:
        """Each new run is of another period than the one before, by its own schedule's times."""
        for job in Job.objects.exclude(pk__in=self.seen).order_by("slot", "pk"):
            self.seen.add(job.pk)
            schedule = Schedule.objects.get(pk=job.schedule_id)
            before = self.last.get(job.handler)
            if before is not None:
                assert schedule.slot_after(before) <= job.slot, f"{job.handler} ran twice"
            self.last[job.handler] = job.slot

    def forget_cancelled(self) -> None:
        """A run that was cancelled is none."""
        for handler in {*self.last}:
            ran = Job.objects.filter(handler=handler).exclude(state="cancelled")
            slots = list(ran.order_by("-slot").values_list("slot", flat=True)[:1])
            self.last = {k: v for k, v in self.last.items() if k != handler}
            if slots:
                self.last[handler] = slots[0]


def check_schedules(row: PlanSubscription, reference: Reference, runs: Runs) -> None:
    rows = Schedule.objects.filter(owner=f"plan:{row.pk}")
    stored = {each.handler: (each.cron, each.time_zone) for each in rows}
    assert stored == reference.table()
    row.refresh_from_db()
    assert schedules.wrong([row]) == []
    now = database_now()
    for each in rows:
        last = runs.last.get(each.handler)
        owed_at = reference.changed_at if last is None else each.slot_after(last)
        latest = max(owed_at, reference.changed_at) + NEAR
        assert each.next_run_at <= max(latest, now), f"{each.handler} is lost until then"


@pytest.fixture(autouse=True)
def plans() -> Iterator[None]:
    make_plans()
    yield
    database_clock.offset = 0.0


@few_and_many(EXAMPLES, 10, 25, steps=st.lists(STEPS, max_size=14))
@pytest.mark.slow
def test_after_any_steps_the_schedules_are_the_tables(steps: list[tuple[str, Any]]) -> None:
    database_clock.offset = 0.0
    with transaction.atomic():
        row, runs = subscribe(), Runs()
        reference = Reference()
        for kind, value in [*steps, ("hours", 30)]:
            note(f"{database_now():%m-%d %H:%M} {kind} {value}")
            if kind == "hours":
                pass_time(value)
                runs.check()
            else:
                act(row, kind, value)
                reference.follow(kind, value)
                runs.forget_cancelled()
            check_schedules(row, reference, runs)
        transaction.set_rollback(True)
