"""The API of plans: the customer's own, and what operators do."""

import pytest

from tailrace.subscriptions.models import PlanSubscription
from tests.subscriptions.plans.kit import REPORT, SCAN, crons, make_plans, subscribe, table_of
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, allow

pytestmark = pytest.mark.django_db
PERMISSION = "tailrace_subscriptions.change_plansubscription"


@pytest.fixture(autouse=True)
def plans() -> dict:
    return make_plans()


@pytest.fixture
def operator() -> Program:
    user = person("operator")
    allow(user, PERMISSION, "tailrace_subscriptions.view_plansubscription")
    return Program(user)


def test_the_plans_and_the_own_one() -> None:
    ann = person("ann")
    program = Program(ann)
    assert program.get("/plan").status_code == 404
    row = subscribe("premium", ann)
    plans = {plan["name"]: plan for plan in program.get("/plans").json()}
    assert plans["premium"]["monitoring"]
    assert {"handler": SCAN, "frequency": "daily", "installed": True} in plans["premium"]["jobs"]
    answer = program.get("/plan").json()
    assert (answer["id"], answer["account"], answer["plan"]) == (row.pk, "ann", "premium")
    assert (answer["status"], answer["grace_until"]) == ("active", None)
    frequencies = {run["handler"]: run["frequency"] for run in answer["next_runs"]}
    assert (frequencies[SCAN], frequencies[REPORT]) == ("daily", "weekly")


def test_operators_enrol_in_bulk_and_may_repeat_it(operator: Program) -> None:
    names = [person(f"user{n}").get_username() for n in range(3)]
    body = {
        "subscriptions": [{"account": name, "plan": "plus", "anchor_day": 10} for name in names]
    }
    assert operator.post("/plan-subscriptions", body).json() == {
        "created": 3,
        "subscribed_before": [],
    }
    answer = operator.post("/plan-subscriptions", body)
    assert answer.json() == {"created": 0, "subscribed_before": names}
    row = PlanSubscription.objects.get(account__username="user1")
    assert crons(row) == table_of("plus")
    assert row.changes.get().by == operator.user
    assert [each["account"] for each in operator.all("/plan-subscriptions", limit=2)] == names[::-1]


def test_a_wrong_row_is_named_and_nobody_is_enrolled(operator: Program) -> None:
    good = {"account": person("ann").get_username(), "plan": "plus"}
    for wrong, pointer in (
        ({"account": "nobody", "plan": "plus"}, "#/subscriptions/1/account"),
        ({"account": "operator", "plan": "plos"}, "#/subscriptions/1/plan"),
        (
            {"account": "operator", "plan": "plus", "time_zone": "Mars"},
            "#/subscriptions/1/time_zone",
        ),
    ):
        answer = operator.post("/plan-subscriptions", {"subscriptions": [good, wrong]})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert not PlanSubscription.objects.exists()


def test_a_batch_has_a_bound(operator: Program) -> None:
    rows = [{"account": "a", "plan": "plus"}] * 1001
    assert operator.post("/plan-subscriptions", {"subscriptions": rows}).status_code == 422
    assert operator.post("/plan-subscriptions", {"subscriptions": []}).status_code == 422


def test_operators_change_cancel_and_resume(operator: Program) -> None:
    row = subscribe("basic")
    path = f"/plan-subscriptions/{row.pk}"
    changed = operator.post(f"{path}/change", {"plan": "premium"})
    assert (changed.status_code, changed.json()["plan"]) == (200, "premium")
    assert crons(row) == table_of("premium")
    assert operator.post(f"{path}/change", {"plan": "premium"}).status_code == 409
    assert operator.post(f"{path}/change", {"plan": "gold"}).status_code == 422
    assert operator.post(f"{path}/change", {"time_zone": "Mars"}).status_code == 422
    assert operator.post(f"{path}/past_due", {}).json()["grace_until"]
    assert operator.post(f"{path}/cancel", {"reason": "as asked"}).json()["next_runs"] == []
    refused = operator.post(f"{path}/change", {"plan": "basic"})
    assert "it is cancelled" in refused.json()["detail"]
    assert operator.post(f"{path}/resume", {}).json()["status"] == "active"
    assert operator.post(f"{path}/resume", {}).status_code == 409
    last = row.changes.get(action="cancelled")
    assert (last.by, last.details) == (operator.user, "as asked")
