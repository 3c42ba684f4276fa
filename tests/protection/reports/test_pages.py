"""The customer's page of reports, as a browser without scripts sees it."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import Report
from tailrace.domains.protection.services.reports.requests import HANDLER
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Plan, PlanJob
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol
from tests.protection.kit import again, make_report
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
DAYS = {"first_day": "2026-10-01", "last_day": "2026-10-31"}


@pytest.fixture
def ann() -> User:
    return person("ann")


def test_a_report_is_made_on_request_and_downloaded(ann, run_jobs) -> None:
    browser = Visitor(ann)
    assert "No reports yet." in browser.text("/protection/reports")
    assert browser.post("/protection/reports", DAYS).status_code == 302
    assert "Your report is being created." in browser.text("/protection/reports")
    address = again(browser.get("/protection/reports"))
    assert browser.get(address).status_code == 204, "as it was"
    run_jobs(HANDLER)
    part = browser.get(address)
    assert "1 October 2026 to 31 October 2026" in words(part)
    assert b"hx-get" not in part.content, "nothing is under way"
    page = browser.text("/protection/reports")
    assert "1 October 2026 to 31 October 2026" in page
    assert "0 alerts · 0 exposures · 0 property changes · 0 removals" in page
    assert "being created" not in page
    report = Report.objects.get(user=ann)
    answer = browser.get(f"/protection/reports/{report.pk}/file")
    assert answer.getvalue().startswith(b"%PDF-")
    assert answer["Content-Type"] == "application/pdf"
    name = "protection-report-2026-10-01-2026-10-31.pdf"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, no-store"


def test_others_get_neither_the_file_nor_the_list(ann) -> None:
    report = make_report(ann)
    bob = Visitor(person("bob"))
    assert bob.get(f"/protection/reports/{report.pk}/file").status_code == 404
    assert "No reports yet." in bob.text("/protection/reports")
    assert Visitor(None).get(f"/protection/reports/{report.pk}/file").status_code == 302


def test_days_that_cannot_be_are_refused_with_the_reason(ann) -> None:
    browser = Visitor(ann)
    backwards = {"first_day": "2026-10-31", "last_day": "2026-10-01"}
    answer = browser.post("/protection/reports", backwards)
    assert answer.status_code == 422
    assert "The first day, 2026-10-31, is after the last day, 2026-10-01." in words(answer)
    assert browser.post("/protection/reports", {"first_day": "no"}).status_code == 422
    assert not Job.objects.filter(handler=HANDLER).exists()


def test_only_so_many_are_made_in_a_day(ann, settings, clock) -> None:
    settings.PROTECTION_REPORTS_PER_DAY = 2
    browser = Visitor(ann)
    statuses = [browser.post("/protection/reports", DAYS).status_code for _ in range(3)]
    assert statuses == [302, 302, 429]
    assert Job.objects.filter(handler=HANDLER).exclude(state="skipped").count() == 1
    clock.step(86_400)
    assert browser.post("/protection/reports", DAYS).status_code == 302


@pytest.mark.parametrize("weekly", [True, False])
def test_a_plan_decides_on_the_days(ann, run_jobs, weekly: bool) -> None:
    frequency = "weekly" if weekly else "monthly"
    premium = Plan.objects.create(name="premium")
    PlanJob.objects.create(plan=premium, handler=HANDLER, frequency=frequency, installed=True)
    enrol(Enrolment(ann.pk, "premium"))
    enqueue(HANDLER, {"account": ann.pk})
    run_jobs(HANDLER)
    report = Report.objects.get(user=ann)
    if weekly:
        assert (report.last_day - report.first_day).days == 6
    else:
        assert (report.first_day.day, (report.last_day + timedelta(days=1)).day) == (1, 1)
