"""Removals are part of a plan: without one none is started, and an ended plan stops the rest."""

import pytest

from tailrace.domains.protection.models import RemovalRequest
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans import status
from tests.protection.kit import subscribed
from tests.protection.removals.kit import ANN, DAY, history, now, started
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
BODY = {"brokers": ["people"], "person": ANN.model_dump()}


def test_without_a_plan_none_is_started(broker) -> None:
    bob = person("bob")
    api = Program(bob, "protection:read", "protection:write")
    assert (
        "you have no active plan" in problem(api.post("/protection/removals", BODY), 409)["detail"]
    )
    browser = Visitor(bob)
    form = {"name": "Bob Example", "email": "bob@example.org", "brokers": ["people"]}
    answer = browser.post("/protection/removals", form)
    assert answer.status_code == 422
    assert "Removals are part of a plan" in answer.content.decode()
    assert 'id="start"' not in browser.get("/protection/removals").content.decode()
    assert not RemovalRequest.objects.exists()
    assert api.post("/protection/removals", BODY | {"brokers": ["x"]}).status_code == 422
    subscribed(bob, "basic")
    assert api.post("/protection/removals", BODY).status_code == 201


def test_an_ended_plan_stops_the_work_until_it_is_resumed(broker, ann, run_removals, clock) -> None:
    row = started(ann)
    subscription = PlanSubscription.objects.get(account=ann)
    status.cancel([subscription.pk])
    run_removals()
    job = Job.objects.get(pk=now(row).job_id)
    assert (job.state, job.attempt) == ("pending", 0)
    assert (broker.sent, history(row)) == ([], ["pending"])
    page = Visitor(ann).text(f"/protection/removals/{row.pk}")
    assert "Until you have one, we send no requests" in page
    status.resume([subscription.pk])
    clock.step(DAY + 60)
    run_removals()
    assert history(row) == ["pending", "submitted", "awaiting_confirmation"]
    assert "we send no requests" not in Visitor(ann).text("/protection/removals")
