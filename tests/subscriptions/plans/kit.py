"""Plans like those of the specification, with handlers of the tests."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from tailrace.jobs.engine.maintenance.ticking import schedules as tick
from tailrace.jobs.models import Job, Schedule
from tailrace.subscriptions.models import Plan, PlanJob, PlanSubscription
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol
from tests.subscriptions.sample_domain import person

SCAN, HOME, REPORT = "test.plan_scan", "test.plan_home", "test.plan_report"
TABLE = {
    "basic": {SCAN: "monthly", HOME: "monthly"},
    "plus": {SCAN: "weekly", HOME: "weekly", REPORT: "monthly"},
    "premium": {SCAN: "daily", HOME: "daily", REPORT: "weekly"},
}
CRONS = {"daily": "0 1 * * *", "weekly": "0 1 * * 3", "monthly": "0 1 10 * *"}
"""With the anchor day 10."""


def make_plans() -> dict[str, Plan]:
    """Create the plans of the table, with their handlers installed; return them by name."""
    plans = {}
    for name, table in TABLE.items():
        plans[name] = Plan.objects.create(name=name, monitoring=name == "premium")
        for handler, frequency in table.items():
            PlanJob.objects.create(
                plan=plans[name], handler=handler, frequency=frequency, installed=True
            )
    return plans


def subscribe(plan: str = "basic", user: User | None = None, **fields: Any) -> PlanSubscription:
    """Subscribe a user to a plan, with the anchor day 10 in UTC."""
    user = user or person(f"customer-{User.objects.count()}")
    fields = {"anchor_day": 10, "time_zone": "UTC"} | fields
    row = enrol(Enrolment(user.pk, plan, **fields))
    assert row is not None
    return row


def crons(row: PlanSubscription) -> dict[str, str]:
    """Return the cron expressions of a subscription's schedules by handler."""
    return dict(schedules(row).values_list("handler", "cron"))


def schedules(row: PlanSubscription) -> Any:
    return Schedule.objects.filter(owner=f"plan:{row.pk}")


def schedule(row: PlanSubscription, handler: str = SCAN) -> Schedule:
    return Schedule.objects.get(name=f"plan:{row.pk}:{handler}")


def table_of(plan: str) -> dict[str, str]:
    """Return what `crons` returns if the schedules are those of this plan."""
    return {handler: CRONS[frequency] for handler, frequency in TABLE[plan].items()}


def now_is(clock: Any, text: str) -> datetime:
    """Move the clock to this time (UTC) and return it."""
    moment = datetime.fromisoformat(f"{text}+00:00")
    clock.step((moment - clock.now()).total_seconds())
    return moment


def let_run(clock: Any, hours: float = 0) -> None:
    """Let time pass, with a tick each hour."""
    for _ in range(int(hours) + 1):
        while tick.run_due():
            pass
        if hours:
            clock.step(timedelta(hours=1).total_seconds())


def jobs(handler: str = SCAN) -> Any:
    return Job.objects.filter(handler=handler).order_by("pk")
