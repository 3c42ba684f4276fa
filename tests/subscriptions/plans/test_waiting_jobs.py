"""A plan that ends, or loses a job, leaves no waiting job of it, whoever created the job."""

from collections.abc import Callable

import pytest

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans import status
from tests.subscriptions.plans.kit import REPORT, SCAN, make_plans, subscribe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def plans() -> dict[str, Plan]:
    return make_plans()


def wait(row: PlanSubscription, handler: str, key: str) -> int:
    """Enqueue a job of the account that is due in a day."""
    id = enqueue(handler, {"account": row.account_id}, unique_key=key, delay=86_400)
    assert id is not None
    return id


def end_of_grace(row: PlanSubscription) -> None:
    PlanSubscription.objects.filter(pk=row.pk).update(
        status="past_due", grace_until="2020-01-01T00:00Z"
    )
    status.end_grace([row.pk])


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda row: status.cancel([row.pk]), "the subscription to the plan was cancelled"),
        (end_of_grace, "the payment is past due and the grace is over"),
        (lambda row: row.delete(), "the subscription to the plan was deleted"),
    ],
)
def test_the_end_of_a_plan_cancels_what_people_requested(
    end: Callable[[PlanSubscription], object], reason: str
) -> None:
    row, other = subscribe("premium"), subscribe("premium")
    by_user = wait(row, SCAN, f"requested:{row.account_id}")
    by_operator = enqueue(SCAN, {"account": row.account_id, "deep": True}, delay=86_400)
    of_others = wait(other, SCAN, "other")
    end(row)
    ended = Job.objects.filter(pk__in=[by_user, by_operator])
    assert [(job.state, job.error) for job in ended] == [("cancelled", reason)] * 2
    assert Job.objects.get(pk=of_others).state == "pending"


def test_a_job_that_the_plan_loses_is_cancelled_and_the_others_wait() -> None:
    row = subscribe("premium")
    report, scan = wait(row, REPORT, "report"), wait(row, SCAN, "scan")
    status.change([row.pk], plan=Plan.objects.get(name="basic"))
    assert Job.objects.get(pk=report).error == "not part of the plan"
    assert Job.objects.get(pk=scan).state == "pending"
