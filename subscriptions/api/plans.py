"""The plans, and the caller's own plan."""

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Router
from pydantic import BeforeValidator

from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans.schedules import next_runs
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import Problem
from tailrace.web.api.schemas import Out

plans, plan = Router(), Router()
READ = Needs("plans:read")
MAX_PLANS = 200


class PlanJobOut(Out):
    handler: str
    frequency: str
    """daily, weekly or monthly."""
    installed: bool
    """If false, the handler is not installed, and the job does not run."""


class PlanOut(Out):
    name: str
    monitoring: bool
    """Whether a change in a change feed, which is polled every few minutes, starts a scan."""
    jobs: Annotated[list[PlanJobOut], BeforeValidator(lambda jobs: list(jobs.all()))]


class NextRun(Out):
    handler: str
    frequency: str
    at: datetime


class PlanSubscriptionRow(Out):
    """A subscription in a list, without its next runs."""

    id: int
    account: Annotated[str, BeforeValidator(str)]
    """Login of the user."""
    plan: Annotated[str, BeforeValidator(str)]
    status: str
    """active, past_due or cancelled."""
    grace_until: datetime | None
    """If the status is past_due: when the jobs stop; null if they have stopped."""
    anchor_day: int
    """Day of the month of monthly jobs. 29 to 31 mean the last day of the month."""
    time_zone: str


class PlanSubscriptionOut(PlanSubscriptionRow):
    """The plan of an account."""

    next_runs: list[NextRun]

    @classmethod
    def with_next_runs(cls, row: PlanSubscription) -> "PlanSubscriptionOut":
        runs = [
            NextRun(handler=run.job.handler, frequency=run.job.frequency, at=run.at)
            for run in next_runs(row)
        ]
        return cls.of(row, next_runs=runs)


@plans.get("", auth=READ, response=list[PlanOut], summary="List the plans")
def list_plans(request: HttpRequest) -> list[PlanOut]:
    rows = Plan.objects.order_by("pk").prefetch_related("jobs")[:MAX_PLANS]
    return list(map(PlanOut.model_validate, rows))


@plan.get("", auth=READ, response=PlanSubscriptionOut, summary="Get your plan")
def get_my_plan(request: HttpRequest) -> PlanSubscriptionOut:
    """The status of your plan, and the next runs of its jobs. 404 if you have no plan."""
    rows = PlanSubscription.objects.select_related("plan", "account")
    row = rows.filter(account=caller(request).user).first()
    if row is None:
        raise Problem(404, "you have no plan")
    return PlanSubscriptionOut.with_next_runs(row)
