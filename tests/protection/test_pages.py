"""The pages of a customer, as a browser without scripts sees them."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.advice import advice
from tailrace.domains.protection.alerts.raising import Finding, raise_alerts
from tailrace.domains.protection.models import Exposure, Severity, WatchlistItem
from tailrace.domains.protection.pages import next_steps
from tailrace.domains.protection.services.scanning.requests import ScanRefused, request_scan
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Plan, PlanJob
from tailrace.subscriptions.plans import status
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol
from tests.kit import at_once
from tests.protection.kit import SSN, fill_protection
from tests.security.remains import rows_with
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def alerts(user: User, count: int) -> None:
    findings = [
        Finding(
            user.pk, "exposure", f"source {number}", Severity.WARNING, {"breaches": [f"L{number}"]}
        )
        for number in range(count)
    ]
    raise_alerts(findings)


def test_an_empty_overview_says_how_to_begin(ann) -> None:
    text = Visitor(ann).text("/protection/")
    assert "What to do next Add the values to look up in leaks" in text
    assert "You have no plan yet, so we do not scan anything for you." in text
    assert "No alerts." in text


def test_the_next_steps_are_of_the_user_alone_and_end(ann) -> None:
    fill_protection(ann)
    browser = Visitor(ann)
    steps = browser.get("/protection/").context["steps"]
    assert len(steps) <= next_steps.MOST_STEPS
    assert "1 new exposure of your data" in browser.text("/protection/")
    assert all(browser.get(step.address).status_code == 200 for step in steps)
    bob = Visitor(person("bob")).get("/protection/").context["steps"]
    assert [step.button for step in bob] == ["Add a value"], "nothing of ann's"
    Exposure.objects.update(state="known")
    assert "new exposure of" not in browser.text("/protection/")


def test_alerts_stand_newest_first_page_by_page_and_others_see_none(ann) -> None:
    alerts(ann, 21)
    browser = Visitor(ann)
    page = browser.get("/protection/")
    names = [f"L{number}" for number in range(21)]
    shown = [name for name in names if f"<p>{name}</p>" in page.content.decode()]
    assert len(shown) == 20
    older = browser.text(f"/protection/?after={page.context['older']}")
    assert "No older" not in older
    [rest] = set(names) - set(shown)
    assert rest in older
    assert "No alerts." in Visitor(person("bob")).text("/protection/")
    assert browser.get("/protection/?after=nonsense").status_code == 404
    listed = Program(ann, "protection:read").all("/protection/alerts", limit=7)
    assert [each["id"] for each in listed] == sorted((each["id"] for each in listed), reverse=True)
    assert len(listed) == 21
    assert listed[0]["title"] == "Your data was found in a leak"
    assert Program(person("eve"), "protection:read").all("/protection/alerts") == []


def test_a_value_is_added_paused_and_removed_and_never_shown_whole(ann) -> None:
    browser = Visitor(ann)
    page = browser.post("/protection/watchlist", {"kind": "ssn", "value": f"666{SSN}"})
    assert page.status_code == 422
    assert "nine digits" in page.content.decode()
    assert SSN not in page.content.decode()
    wrong = browser.post("/protection/watchlist", {"kind": "email", "value": "ann"})
    assert "is not an email address: write it like" in wrong.content.decode()
    browser.post("/protection/watchlist", {"kind": "ssn", "value": SSN})
    item = WatchlistItem.objects.get()
    text = browser.text("/protection/watchlist")
    assert "•••-••-9999 Social Security number not looked up yet" in text
    assert SSN not in text
    assert rows_with(SSN) == []
    stranger = Visitor(person("bob"))
    assert stranger.post(f"/protection/watchlist/{item.pk}/remove").status_code == 404
    assert "•••-••-9999" not in stranger.text("/protection/watchlist")
    browser.post(f"/protection/watchlist/{item.pk}/pause")
    assert "paused" in browser.text("/protection/watchlist")
    browser.post(f"/protection/watchlist/{item.pk}/resume")
    assert WatchlistItem.objects.get().active
    assert browser.post(f"/protection/watchlist/{item.pk}/publish").status_code == 404
    browser.post(f"/protection/watchlist/{item.pk}/remove")
    assert "You watch no values yet." in browser.text("/protection/watchlist")


def test_exposures_say_what_to_do_and_are_marked(ann) -> None:
    exposure = fill_protection(ann)
    exposure.breach.data_classes = ["Passwords", "Email addresses", "<b>Shoe sizes</b>"]
    exposure.breach.save()
    browser = Visitor(ann)
    text = browser.text("/protection/exposures")
    assert (
        "Adobe a•••@example.org email address Leaked data: Passwords, Email addresses, <b>" in text
    )
    assert text.index("Change the password of this site") < text.index("Expect fake mails")
    data = {"id": exposure.pk, "state": "resolved", "from": "new"}
    assert Visitor(person("bob")).post("/protection/exposures/move", data).status_code == 302
    assert Exposure.objects.get().state == "new"
    answer = browser.post("/protection/exposures/move", data)
    assert answer["Location"] == "/protection/exposures?state=new"
    assert "1 exposure marked as resolved. " in browser.text(answer["Location"])
    assert "No exposure is new." in browser.text("/protection/exposures")
    assert "Adobe" in browser.text("/protection/exposures?state=resolved")
    for wrong in ({"id": "x"}, {"state": "gone"}, {"id": list(range(21))}):
        assert browser.post("/protection/exposures/move", data | wrong).status_code == 400
    assert browser.get("/protection/exposures?state=gone").status_code == 404


@pytest.mark.parametrize(
    ("lost", "first"),
    [
        ("Partial credit card data", "Ask the bank"),
        ("Social security numbers", "Freeze your credit"),
        ("PINs", "Change the password"),
        ("Shipping addresses", "This is not urgent"),
        ("Phone numbers", "Expect fraudulent calls"),
    ],
)
def test_advice_follows_from_what_was_lost(lost: str, first: str) -> None:
    assert advice([lost])[0].startswith(first)
    assert advice(["Usernames", lost]) == advice([lost])


SCAN = "protection.notifications_send"
"""A handler of the domain that a plan of the tests has."""


def enrolled(user: User) -> int:
    plan = Plan.objects.create(name="of the tests")
    PlanJob.objects.create(plan=plan, handler=SCAN, frequency="daily", installed=True)
    subscription = enrol(Enrolment(user.pk, plan.name, anchor_day=10, time_zone="UTC"))
    assert subscription is not None
    return subscription.pk


def test_a_scan_is_requested_within_the_plan_and_a_number_a_day(
    ann, clock, settings, run_jobs
) -> None:
    settings.PROTECTION_SCANS_PER_DAY = 2
    browser = Visitor(ann)
    with pytest.raises(ScanRefused, match="Your plan does not include"):
        request_scan(ann.pk, SCAN)
    subscription = enrolled(ann)
    assert "Notifications send daily next on " in browser.text("/protection/")
    with pytest.raises(ScanRefused, match="Your plan does not include"):
        request_scan(person("bob").pk, SCAN)
    for handler in ("subscriptions.notify", "protection.nothing"):
        with pytest.raises(ScanRefused, match="Your plan does not include"):
            request_scan(ann.pk, handler)
    assert request_scan(ann.pk, SCAN) == request_scan(ann.pk, SCAN), "it has not begun"
    run_jobs(SCAN)
    answer = browser.post("/protection/scan", {"handler": SCAN})
    assert "The scan begins in a moment." in browser.text(answer["Location"])
    run_jobs(SCAN)
    answer = browser.post("/protection/scan", {"handler": SCAN})
    assert "You requested 2 scans today, the maximum" in browser.text(answer["Location"])
    assert Job.objects.filter(handler=SCAN).count() == 2, "one that was refused leaves no job"
    clock.step(86_401)
    request_scan(ann.pk, SCAN)
    status.cancel([subscription])
    with pytest.raises(ScanRefused, match="Your plan does not include"):
        request_scan(ann.pk, SCAN)


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_one_scan_is_made(ann, settings) -> None:
    settings.PROTECTION_SCANS_PER_DAY = 1
    enrolled(ann)
    assert len(set(at_once(6, lambda _number: request_scan(ann.pk, SCAN)))) == 1


def test_the_api_shows_and_changes_the_same(ann) -> None:
    exposure = fill_protection(ann)
    program = Program(ann, "protection:read", "protection:write")
    [listed] = program.all("/protection/exposures", state="new")
    assert (listed["masked"], listed["breach"]) == ("a•••@example.org", "Adobe")
    answer = program.patch(f"/protection/exposures/{exposure.pk}", {"state": "known"})
    assert answer.json()["state"] == "known"
    assert program.all("/protection/exposures", state="new") == []
    refused = program.post("/protection/watchlist", {"kind": "ssn", "value": "000-11-2222"})
    assert refused.status_code == 422
    assert "000-11-2222" not in refused.content.decode()
    assert refused.json()["errors"][0]["pointer"] == "#/value"
    item = program.post("/protection/watchlist", {"kind": "phone", "value": "+12125550100"}).json()
    assert item["masked"] == "+12•••00"
    assert not program.patch(f"/protection/watchlist/{item['id']}", {"active": False}).json()[
        "active"
    ]
    assert program.delete(f"/protection/watchlist/{item['id']}").status_code == 204
    assert [each["kind"] for each in program.all("/protection/watchlist")] == ["ssn", "email"]
    answer = program.post("/protection/scans", {"handler": SCAN})
    assert answer.status_code == 409
    assert "Your plan does not include" in answer.json()["detail"]
    reader = Program(ann, "protection:read")
    assert reader.delete(f"/protection/watchlist/{exposure.item_id}").status_code == 403


def test_staff_see_values_in_part_and_only_with_the_permission(ann) -> None:
    exposure = fill_protection(ann)
    clerk = person("clerk")
    clerk.is_staff = True
    clerk.save()
    allow(clerk, "tailrace_protection.view_exposure")
    page = f"/admin/tailrace_protection/exposure/{exposure.pk}/change/"
    for path in ("/admin/tailrace_protection/exposure/", page):
        assert "You need the permission tailrace_protection.view_watchlistitem" in Visitor(
            clerk
        ).text(path)
    allow(clerk, "tailrace_protection.view_exposure", "tailrace_protection.view_watchlistitem")
    clerk = User.objects.get(pk=clerk.pk)
    item = f"/admin/tailrace_protection/watchlistitem/{exposure.item_id}/change/"
    for path in ("/admin/tailrace_protection/exposure/", page, item):
        html = Visitor(clerk).get(path).content.decode()
        assert "a•••@example.org" in html
        assert exposure.item.value not in html
        assert exposure.item.value_key not in html
