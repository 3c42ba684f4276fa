"""The customer's page of the plan, and the admin of plans and subscriptions."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans import rewrite, status
from tests.subscriptions.plans.kit import (
    HOME,
    SCAN,
    crons,
    make_plans,
    now_is,
    schedule,
    subscribe,
    table_of,
)
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
PLANS = "/admin/tailrace_subscriptions/plan"
ROWS = "/admin/tailrace_subscriptions/plansubscription"


@pytest.fixture(autouse=True)
def plans() -> dict[str, Plan]:
    return make_plans()


@pytest.fixture
def admin() -> Visitor:
    return Visitor(User.objects.create_superuser("root"))


def test_the_page_shows_plan_status_and_next_runs(clock) -> None:
    now_is(clock, "2027-01-20T23:30:00")
    ann = person("ann")
    browser = Visitor(ann)
    assert "You have no plan." in browser.text("/me/plan")
    row = subscribe("premium", ann, time_zone="Asia/Tokyo")
    text = browser.text("/me/plan")
    assert "Premium active" in text
    assert "Monitoring is on" in text
    assert "Plan scan daily 2027-01-21 " in text
    assert "Times are in the time zone Asia/Tokyo." in text
    status.mark_past_due([row.pk])
    assert re.search(r"Your plan runs until 2027-01-28 08:3\d:\d\d JST", browser.text("/me/plan"))
    status.cancel([row.pk])
    text = browser.text("/me/plan")
    assert "Your plan is cancelled" in text
    assert "Plan scan" not in text


def _table(plan: Plan, **frequencies: str) -> dict[str, object]:
    """Return the form of a plan with these frequencies of its jobs."""
    jobs = list(plan.jobs.order_by("pk"))
    form: dict[str, object] = {"name": plan.name, "jobs-TOTAL_FORMS": len(jobs) + 1}
    form |= {"jobs-INITIAL_FORMS": len(jobs)}
    for number, job in enumerate(jobs):
        key = job.handler.removeprefix("test.")
        form[f"jobs-{number}-id"] = job.pk
        form[f"jobs-{number}-plan"] = plan.pk
        form[f"jobs-{number}-handler"] = job.handler
        form[f"jobs-{number}-frequency"] = frequencies.get(key, job.frequency)
    return form


def test_an_edited_table_rewrites_the_schedules_by_a_job(
    admin: Visitor, run_jobs: Callable
) -> None:
    row, plan = subscribe("basic"), Plan.objects.get(name="basic")
    new = {"jobs-2-handler": "test.absent", "jobs-2-frequency": "weekly", "jobs-2-plan": plan.pk}
    answer = admin.post(f"{PLANS}/{plan.pk}/change/", _table(plan, plan_scan="daily") | new)
    assert answer.status_code == 302, words(answer)
    assert crons(row) == table_of("basic"), "not in the request"
    assert "being rewritten" in admin.text(f"{PLANS}/")
    run_jobs(rewrite.HANDLER)
    assert crons(row) == {SCAN: "0 1 * * *", HOME: "0 1 10 * *"}
    text = admin.text(f"{PLANS}/")
    assert "test.absent weekly" in text
    assert "being rewritten" not in text
    assert "handler not installed" in admin.text(f"{PLANS}/{plan.pk}/change/")


def test_a_renamed_plan_rewrites_nothing(admin: Visitor) -> None:
    plan = Plan.objects.get(name="basic")
    assert (
        admin.post(f"{PLANS}/{plan.pk}/change/", _table(plan) | {"name": "light"}).status_code
        == 302
    )
    plan.refresh_from_db()
    assert (plan.name, plan.rewrite_after) == ("light", None)


def test_a_handler_that_takes_no_account_is_refused(admin: Visitor) -> None:
    plan = Plan.objects.get(name="basic")
    new = {"jobs-2-handler": "test.batch", "jobs-2-frequency": "weekly", "jobs-2-plan": plan.pk}
    answer = admin.post(f"{PLANS}/{plan.pk}/change/", _table(plan) | new)
    assert answer.status_code == 200
    assert "A plan cannot have this handler: test.batch" in words(answer)


def test_a_plan_with_subscriptions_is_not_deleted(admin: Visitor) -> None:
    subscribe("basic")
    plan = Plan.objects.get(name="basic")
    admin.post(f"{PLANS}/{plan.pk}/delete/", {"post": "yes"})
    assert Plan.objects.filter(pk=plan.pk).exists()


def test_an_operator_enrols_changes_and_moves_an_account(admin: Visitor) -> None:
    ann, premium = person("ann"), Plan.objects.get(name="premium")
    form = {"account": ann.pk, "plan": premium.pk, "anchor_day": 10, "time_zone": "UTC"}
    assert admin.post(f"{ROWS}/add/", form).status_code == 302
    row = PlanSubscription.objects.get()
    assert crons(row) == table_of("premium")
    assert row.changes.get().by == admin.user
    admin.post(f"{ROWS}/{row.pk}/change/", form | {"plan": Plan.objects.get(name="plus").pk})
    assert crons(row) == table_of("plus")
    answer = admin.post(f"{ROWS}/{row.pk}/change/", form | {"anchor_day": 32})
    assert answer.status_code == 200
    admin.post(f"{ROWS}/{row.pk}/cancel/", {"reason": "moved away"})
    assert crons(row) == {}
    text = admin.text(f"{ROWS}/{row.pk}/change/")
    assert "Cancelled moved away root" in text
    refused = admin.post(f"{ROWS}/{row.pk}/change/", form | {"plan": premium.pk, "anchor_day": 3})
    assert "The subscription is cancelled: resume it first." in words(refused)
    admin.post(f"{ROWS}/", {"action": "resume", "_selected_action": [row.pk]})
    assert crons(row) == table_of("plus")
    assert f"{schedule(row).next_run_at:%Y-%m-%d}" in admin.text(f"{ROWS}/{row.pk}/change/")
