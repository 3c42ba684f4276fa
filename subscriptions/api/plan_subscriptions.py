"""Subscriptions to plans, for operators: enrol, change, past due, cancel and resume."""

from collections.abc import Callable
from typing import Annotated

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from tailrace.environment.suggest import did_you_mean
from tailrace.subscriptions.api.plans import PlanSubscriptionOut, PlanSubscriptionRow
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.models.person import check_time_zone
from tailrace.subscriptions.plans import status
from tailrace.subscriptions.plans.enrolment import Enrolment, EnrolmentError, enrol_many
from tailrace.web.api.auth import Needs, caller, count
from tailrace.web.api.faults import Fault, in_body
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, of_faults, wrong_field
from tailrace.web.api.schemas import In, Out

router = Router()
VIEW = "tailrace_subscriptions.view_plansubscription"
CHANGE = "tailrace_subscriptions.change_plansubscription"
READ, WRITE = Needs("plans:read"), Needs("plans:write", CHANGE)
MAX_ENROLMENTS = 1000
PER_REQUEST = 20
"""This number of enrolments counts as one request."""

Name = Annotated[str, Field(max_length=150)]
Day = Annotated[int, Field(ge=1, le=31, description="day of the month of monthly jobs")]
Zone = Annotated[str, Field(max_length=64, description="such as Europe/Berlin")]


class EnrolmentIn(In):
    account: Annotated[Name, Field(description="login of the user")]
    plan: Annotated[Name, Field(description="name of the plan")]
    anchor_day: Day | None = None
    """Day of the month of monthly jobs; null: today."""
    time_zone: Zone | None = None
    """Null: the time zone in the account's preferences."""


class EnrolmentsIn(In):
    subscriptions: Annotated[list[EnrolmentIn], Field(min_length=1, max_length=MAX_ENROLMENTS)]


class EnrolmentsOut(Out):
    created: int
    subscribed_before: list[str]
    """Accounts that already have a subscription, perhaps a cancelled one. It is not changed."""


class PlanChangeIn(In):
    """The fields to change. A null field is not changed."""

    plan: Name | None = None
    anchor_day: Day | None = None
    time_zone: Zone | None = None


class PlanReasonIn(In):
    reason: str = Field("", max_length=300, description="for the audit trail")


@router.get(
    "",
    auth=Needs("plans:read", VIEW),
    response=Page[PlanSubscriptionRow],
    summary="List the subscriptions to plans",
)
def list_plan_subscriptions(
    request: HttpRequest, params: Query[PageParams]
) -> Page[PlanSubscriptionRow]:
    return newest_first(_subscriptions(), params, PlanSubscriptionRow.model_validate)


@router.post("", auth=WRITE, response=EnrolmentsOut, summary="Subscribe accounts to plans")
def enrol_accounts(request: HttpRequest, body: EnrolmentsIn) -> EnrolmentsOut:
    """Subscribes all accounts or none. Safe to repeat: accounts with a subscription keep it."""
    count(request, len(body.subscriptions) / PER_REQUEST)
    names = {row.account for row in body.subscriptions}
    ids = dict(User.objects.filter(username__in=names).values_list("username", "pk"))
    if unknown := [n for n, row in enumerate(body.subscriptions) if row.account not in ids]:
        faults = [_fault(number, "account", "no user has this login") for number in unknown]
        raise of_faults(faults)
    enrolments = [
        Enrolment(ids[row.account], row.plan, row.anchor_day, row.time_zone)
        for row in body.subscriptions
    ]
    try:
        result = enrol_many(enrolments, caller(request).user)
    except EnrolmentError as error:
        raise of_faults([_fault(error.index, error.field, error.message)]) from None
    logins = {id: name for name, id in ids.items()}
    before = sorted({logins[id] for id in result.subscribed_before})
    return EnrolmentsOut(created=len(result.subscriptions), subscribed_before=before)


@router.get(
    "/{int:id}", auth=READ, response=PlanSubscriptionOut, summary="Get a subscription to a plan"
)
def get_plan_subscription(request: HttpRequest, id: int) -> PlanSubscriptionOut:
    """Your own subscription, or any subscription with the permission to view them."""
    rows = _subscriptions()
    if not caller(request).may(VIEW):
        rows = rows.filter(account=caller(request).user)
    return PlanSubscriptionOut.with_next_runs(find_row(rows, id, "subscription"))


@router.post("/{int:id}/change", auth=WRITE, response=PlanSubscriptionOut, summary="Change a plan")
def change_plan(request: HttpRequest, id: int, body: PlanChangeIn) -> PlanSubscriptionOut:
    """A job that has run in the current day, week or month does not run again in it; a new job runs
    within an hour. 409 if nothing changes, or if the subscription is cancelled."""
    plan = None if body.plan is None else _plan(body.plan)
    if body.time_zone is not None:
        try:
            check_time_zone(body.time_zone)
        except ValidationError as error:
            raise wrong_field("time_zone", error.messages[0]) from None

    def change(ids: list[int], by: User) -> status.MoveResult:
        day, zone = body.anchor_day, body.time_zone
        return status.change(ids, plan=plan, anchor_day=day, time_zone=zone, by=by)

    return _move(request, id, change)


@router.post(
    "/{int:id}/past_due", auth=WRITE, response=PlanSubscriptionOut, summary="Mark as past due"
)
def mark_past_due(request: HttpRequest, id: int, body: PlanReasonIn) -> PlanSubscriptionOut:
    """The jobs run until `grace_until` (PLAN_GRACE_DAYS). 409 if the subscription is not active."""
    return _move(request, id, lambda ids, by: status.mark_past_due(ids, by, body.reason))


@router.post("/{int:id}/cancel", auth=WRITE, response=PlanSubscriptionOut, summary="Cancel a plan")
def cancel_plan(request: HttpRequest, id: int, body: PlanReasonIn) -> PlanSubscriptionOut:
    """The schedules are removed, and the waiting jobs are cancelled."""
    return _move(request, id, lambda ids, by: status.cancel(ids, by, body.reason))


@router.post("/{int:id}/resume", auth=WRITE, response=PlanSubscriptionOut, summary="Resume a plan")
def resume_plan(request: HttpRequest, id: int, body: PlanReasonIn) -> PlanSubscriptionOut:
    """Makes a cancelled or past due subscription active. 409 if it is already active."""
    return _move(request, id, lambda ids, by: status.resume(ids, by, body.reason))


def _subscriptions() -> QuerySet[PlanSubscription]:
    return PlanSubscription.objects.select_related("plan", "account")


def _move(
    request: HttpRequest, id: int, move: Callable[[list[int], User], status.MoveResult]
) -> PlanSubscriptionOut:
    find_row(_subscriptions(), id, "subscription")
    result = move([id], caller(request).user)
    if refused := result.refused.get(id):
        raise Problem(409, f"subscription {id} was not changed: {refused}")
    return PlanSubscriptionOut.with_next_runs(find_row(_subscriptions(), id, "subscription"))


def _plan(name: str) -> Plan:
    plan = Plan.objects.filter(name=name).first()
    if plan is None:
        names = Plan.objects.values_list("name", flat=True)
        raise wrong_field("plan", f"no plan is called {name!r}{did_you_mean(name, names)}")
    return plan


def _fault(index: int, field: str, detail: str) -> Fault:
    return in_body(detail, "subscriptions", index, field)
