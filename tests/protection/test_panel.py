"""What operators see on the overview: late scans, providers, parked removals."""

import re

import pytest
from django.contrib.auth.models import User

from tailrace.db.query import database_now
from tailrace.domains.protection.models import RemovalRequest
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Breaker, Bucket
from tailrace.subscriptions.models import Plan, PlanJob
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol
from tests.subscriptions.sample_domain import person
from tests.web.program import allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
SCAN = "protection.darkwatch_scan"


@pytest.fixture
def operator() -> User:
    user = person("operator")
    user.is_staff = True
    user.save()
    return user


def test_late_scans_stand_by_plan_and_what_is_not_late_counts_as_none(operator, clock) -> None:
    allow(operator, "tailrace_protection.view_alert")
    ann = person("ann")
    for name in ("gold", "silver"):
        plan = Plan.objects.create(name=name)
        PlanJob.objects.create(plan=plan, handler=SCAN, frequency="daily", installed=True)
    enrol(Enrolment(ann.pk, "gold", anchor_day=10, time_zone="UTC"))
    assert f"gold {SCAN} daily 0 – silver {SCAN} daily 0 –" in Visitor(operator).text("/")
    enqueue(SCAN, {"account": ann.pk})
    enqueue(SCAN, {"account": ann.pk}, delay=86_400)
    clock.step(7200)
    text = Visitor(operator).text("/")
    assert f"silver {SCAN} daily 0 –" in text
    assert f"gold {SCAN} daily 2 2 h" in text, "the job, and the schedule's first run"


def test_a_provider_that_is_away_and_parked_removals_are_shown(operator) -> None:
    now = database_now()
    Breaker.objects.create(
        name="protection:hibp", failures=7, opened=1, open_until=now.replace(year=now.year + 1),
        last_error="<b>answered 503</b>", failed_at=now,
    )  # fmt: skip
    Bucket.objects.create(name="protection:hibp:rate", tokens=0.4, at=now)
    Bucket.objects.create(name="protection:open_data:rate", tokens=3, at=now)
    RemovalRequest.objects.create(user=person("ann"), broker="sample", state="needs_person")
    allow(operator, "tailrace_protection.view_alert")
    text = Visitor(operator).text("/")
    assert "hibp open next try in" in text
    assert re.search(r"7 0\.4 (now|\d+ s ago) needs tailrace_jobs.view_job_payload", text)
    assert re.search(r"open_data closed 0 3\.0 (now|\d+ s ago) –", text)
    assert "1 removal request needs a person" in text
    allow(operator, "tailrace_protection.view_alert", "tailrace_jobs.view_job_payload")
    html = Visitor(User.objects.get(pk=operator.pk)).get("/").content.decode()
    assert "&lt;b&gt;answered 503" in html


def test_staff_without_the_permission_see_no_card(operator) -> None:
    assert "No removal request needs a person." not in Visitor(operator).text("/")
