"""Attacks on plans: who may see and change whose, and what a request may cost."""

import pytest

from tailrace.subscriptions.models import PlanSubscription
from tests.subscriptions.plans.kit import crons, make_plans, subscribe, table_of
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def plans() -> dict:
    return make_plans()


def test_a_customer_gives_themselves_no_better_plan() -> None:
    ann = person("ann")
    row = subscribe("basic", ann)
    program, path = Program(ann), f"/plan-subscriptions/{row.pk}"
    body = {"subscriptions": [{"account": "ann", "plan": "premium"}]}
    assert program.post("/plan-subscriptions", body).status_code == 403
    assert program.post(f"{path}/change", {"plan": "premium"}).status_code == 403
    for move in ("resume", "cancel", "past_due"):
        assert program.post(f"{path}/{move}", {}).status_code == 403
    assert program.get("/plan-subscriptions").status_code == 403
    assert Visitor(ann).post("/me/plan", {"plan": "premium"}).status_code == 405
    assert crons(row) == table_of("basic")


def test_the_plan_of_another_is_not_there() -> None:
    row = subscribe("premium", person("ann"))
    bob = Program(person("bob"))
    answers = [bob.get(f"/plan-subscriptions/{id}") for id in (row.pk, row.pk + 1)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == answers[1].json(), "whether it exists is not told"
    assert bob.get("/plan").status_code == 404


def test_a_token_without_the_scope_changes_nothing() -> None:
    operator = person("operator")
    allow(operator, "tailrace_subscriptions.change_plansubscription")
    row = subscribe("basic")
    program = Program(operator, "plans:read")
    answer = program.post(f"/plan-subscriptions/{row.pk}/cancel", {})
    assert (answer.status_code, answer.json()["title"][:9]) == (403, "The token")
    assert crons(row) == table_of("basic")


def test_who_only_views_plans_moves_none_in_the_admin() -> None:
    staff = person("staff")
    staff.is_staff = True
    staff.save()
    allow(staff, "tailrace_subscriptions.view_plansubscription", "tailrace_subscriptions.view_plan")
    row = subscribe("basic")
    browser = Visitor(staff)
    address = f"/admin/tailrace_subscriptions/plansubscription/{row.pk}"
    assert "Mark as past due" not in browser.text(f"{address}/change/")
    for move in ("cancel", "past_due", "resume"):
        assert browser.post(f"{address}/{move}/").status_code == 403
    assert (
        browser.post("/admin/tailrace_subscriptions/plan/add/", {"name": "free"}).status_code == 403
    )
    assert PlanSubscription.objects.get().status == "active"


def test_many_enrolments_cost_more_than_one_request(settings) -> None:
    settings.API_RATE, settings.API_BURST = 0.01, 30
    operator = person("operator")
    allow(operator, "tailrace_subscriptions.change_plansubscription")
    program = Program(operator)
    rows = [{"account": "operator", "plan": "basic"}] * 1000
    codes = {
        program.post("/plan-subscriptions", {"subscriptions": rows}).status_code for _ in range(2)
    }
    assert 429 in codes
