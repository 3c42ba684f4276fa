"""Scans of watchlists: exposures once, alerts once, and what happens when something goes wrong."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from structlog.testing import capture_logs

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.models import (
    Alert,
    Breach,
    Exposure,
    ItemScan,
    Severity,
    WatchlistItem,
)
from tailrace.domains.protection.services.providers.source import FoundBreach, Source, all_sources
from tailrace.domains.protection.services.scanning import lookups
from tailrace.domains.protection.services.scanning import scan as scanning
from tailrace.domains.protection.services.scanning.breaches import severity_of
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.scanning.requests import request_scan
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.engine.maintenance.ticking import schedules as tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows.state import status
from tailrace.jobs.models import Flow, Job, Schedule
from tailrace.subscriptions.plans import status as plan_status
from tests.kit import at_once
from tests.protection.kit import customer, customer_who_watches_all, items_of, scan
from tests.servers.hibp import HibpService, error, make_breach
from tests.servers.web import Response
from tests.web.jobs.requesting import operator
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL = "ann@example.org"


@pytest.fixture
def ann(hibp: HibpService) -> User:
    """A customer who watches a value of each kind."""
    return customer_who_watches_all("ann")


def severities() -> list[int]:
    return list(Alert.objects.order_by("pk").values_list("severity", flat=True))


def test_a_scan_records_exposures_and_raises_an_alert(ann, hibp, run_jobs) -> None:
    hibp.add(make_breach("Adobe", "Email addresses", "Passwords"), EMAIL)
    hibp.add(make_breach("Forum", "Usernames"), "ann", EMAIL)
    hibp.pastes[EMAIL] = [{"Source": "Pastebin", "Id": "x"}]
    job = scan(ann, run_jobs)
    assert job.state == "completed"
    assert job.result == {
        "outcome": "complete",
        "missing": {},
        "items": 5,
        "new_exposures": 4,
        "unreadable": [],
        "not_looked_up": {"domain": 1, "ssn": 1},
    }
    exposures = Exposure.objects.order_by("item", "breach__name")
    assert [(each.item.kind, each.breach.name, each.severity) for each in exposures] == [
        ("email", "Adobe", Severity.CRITICAL),
        ("email", "Forum", Severity.INFO),
        ("email", "Pastebin:x", Severity.WARNING),
        ("username", "Forum", Severity.INFO),
    ]
    assert {each.state for each in exposures} == {"new"}
    alerts = Alert.objects.order_by("source")
    assert [(each.kind, each.source, each.severity) for each in alerts] == [
        ("exposure", "hibp_breaches", Severity.CRITICAL),
        ("exposure", "hibp_pastes", Severity.WARNING),
    ]
    assert alerts[0].details == {
        "breaches": ["Adobe", "Forum"],
        "leaks": 2,
        "exposures": 3,
        "lost": ["Email addresses", "Passwords", "Usernames"],
    }
    assert Job.objects.filter(handler=NOTIFICATIONS, lane=str(ann.pk)).count() == 1
    assert sorted(hibp.asked("breachedaccount")) == ["+12125550100", "ann", EMAIL]
    assert hibp.asked("pasteaccount") == [EMAIL]


def test_a_scan_again_makes_no_exposure_and_no_alert(ann, hibp, run_jobs, clock) -> None:
    hibp.add(make_breach("Adobe"), "*")
    scan(ann, run_jobs)
    before = Exposure.objects.count(), Alert.objects.count()
    clock.step(30 * 86_400)
    assert scan(ann, run_jobs).result["new_exposures"] == 0
    assert (Exposure.objects.count(), Alert.objects.count()) == before == (3, 1)
    assert len(hibp.requests) == 8, "it looked everything up again"


def test_within_a_day_a_breach_is_announced_if_it_is_worse(ann, hibp, run_jobs, clock) -> None:
    hibp.add(make_breach("Forum", "Email addresses"), EMAIL)
    scan(ann, run_jobs)
    hibp.add(make_breach("Shop", "Phone numbers"), EMAIL)
    clock.step(3600)
    scan(ann, run_jobs)
    assert severities() == [Severity.WARNING], "the exposure is shown, and no second mail is sent"
    hibp.add(make_breach("Bank", "Credit cards"), EMAIL)
    clock.step(3600)
    scan(ann, run_jobs)
    assert severities() == [Severity.WARNING, Severity.CRITICAL]
    hibp.add(make_breach("Club", "Email addresses"), EMAIL)
    clock.step(86_500)
    scan(ann, run_jobs)
    assert severities() == [Severity.WARNING, Severity.CRITICAL, Severity.WARNING]
    assert Exposure.objects.count() == 4


def test_a_breach_that_turns_out_to_be_worse_is_new_again(ann, hibp, run_jobs, clock) -> None:
    breach = make_breach("Adobe", "Email addresses")
    hibp.add(breach, EMAIL)
    scan(ann, run_jobs)
    Exposure.objects.update(state="resolved")
    breach |= {"DataClasses": ["Passwords"], "ModifiedDate": "2026-01-01T00:00:00Z"}
    clock.step(60)
    scan(ann, run_jobs)
    [exposure] = Exposure.objects.all()
    assert (exposure.state, exposure.severity) == ("new", Severity.CRITICAL)
    assert severities() == [Severity.WARNING, Severity.CRITICAL]
    assert Breach.objects.get().data_classes == ["Passwords"]


@pytest.mark.parametrize(
    ("classes", "severity"),
    [
        (["Usernames", "Social security numbers"], Severity.CRITICAL),
        (["Partial credit card data"], Severity.CRITICAL),
        (["Historical passwords"], Severity.CRITICAL),
        (["Password hints", "Email addresses"], Severity.WARNING),
        (["Phone numbers"], Severity.WARNING),
        (["Email messages", "Usernames"], Severity.INFO),
        ([], Severity.INFO),
    ],
)
def test_severity_goes_by_what_was_lost(classes, severity) -> None:
    assert severity_of(classes) == severity


def test_a_job_asks_the_sources_that_it_names_alone(ann, hibp, run_jobs) -> None:
    enqueue(SCAN, {"account": ann.pk, "sources": ["hibp_pastes"]})
    run_jobs(SCAN)
    assert [request.path for request in hibp.requests] == ["/pasteaccount/ann%40example.org"]


def test_a_job_of_all_sources_asks_those_that_have_not_answered_since(ann, hibp, run_jobs) -> None:
    hibp.faults["/pasteaccount"] = Response(500)
    job = scan(ann, run_jobs)
    assert job.result["outcome"] == "partial"
    hibp.requests.clear()
    hibp.faults.clear()
    enqueue(SCAN, {"account": ann.pk, "since": job.created_at})
    run_jobs(SCAN)
    assert [request.path for request in hibp.requests] == ["/pasteaccount/ann%40example.org"]


def test_a_value_that_a_source_does_not_take_stops_no_other(ann, hibp, run_jobs) -> None:
    hibp.add(make_breach("Adobe"), "ann")
    hibp.faults["/breachedaccount/%2B1212"] = error(400, "Not an account")
    job = scan(ann, run_jobs)
    assert (job.result["outcome"], job.result["new_exposures"]) == ("complete", 1)


def test_a_value_of_a_lost_key_is_named_and_the_others_are_looked_up(ann, hibp, run_jobs) -> None:
    hibp.add(make_breach("Adobe"), "*")
    email, *_others = items_of(ann)
    WatchlistItem.objects.filter(pk=email.pk).update(value="gAAAA-of-another-key")
    with capture_logs() as logs:
        job = scan(ann, run_jobs)
    assert (job.state, job.attempt) == ("completed", 1)
    assert (job.result["outcome"], job.result["unreadable"]) == ("partial", [email.pk])
    assert job.result["new_exposures"] == 2
    assert hibp.asked("breachedaccount") == ["+12125550100", "ann"]
    [entry] = [each for each in logs if each["event"] == "scan.unreadable"]
    assert entry["items"] == [email.pk]
    assert "ENCRYPTION_KEYS" in entry["hint"]
    page = Visitor(ann).get("/protection/watchlist").content.decode()
    assert page.count("remove it and add it again") == 1


def test_a_big_watchlist_is_scanned_in_parts(hibp, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(lookups, "MOST_ITEMS", 4)
    big = customer("big")
    for number in range(10):
        items.add(big.pk, "username", f"user{number}")
    job = scan(big, run_jobs)
    assert job.result == {"parts": 3, "items": 10}
    parts = Job.objects.filter(handler=SCAN).exclude(pk=job.pk).order_by("pk")
    assert [part.result["items"] for part in parts] == [4, 4, 2]
    assert {part.lane for part in parts} == {str(big.pk)}
    [flow] = Flow.objects.filter(pk__in=parts.values("flow_id"))
    assert status(flow).counts == {"completed": 3}
    assert sorted(hibp.asked()) == [f"user{number}" for number in range(10)]
    Job.objects.filter(pk=job.pk).update(state="pending", finished_at=None, done_on=None)
    run_jobs(SCAN)
    assert len(hibp.requests) == 10
    assert Job.objects.filter(handler=SCAN).count() == 4, "run again, it enqueues no parts again"


def test_parts_that_have_not_begun_are_not_doubled(hibp, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(lookups, "MOST_ITEMS", 4)
    big = customer("big")
    for number in range(9):
        items.add(big.pk, "username", f"user{number}")
    job = Job.objects.get(pk=enqueue(SCAN, {"account": big.pk}))
    for _ in range(2):
        payload = scanning.ScanPayload(account=big.pk)
        scanning.enqueue_parts(payload, lookups.parts(payload.items()), job.created_at)
    assert Job.objects.filter(handler=SCAN).count() == 4


def test_a_removed_item_leaves_nothing_though_it_is_being_looked_up(ann, hibp, run_jobs) -> None:
    hibp.add(make_breach("Adobe"), "*")
    email = items_of(ann)[0]
    hibp.before = lambda request: (
        at_once(1, lambda _: items.remove(ann.pk, email.pk)) if "%40" in request.path else None
    )
    job = scan(ann, run_jobs)
    assert job.state == "completed"
    assert {each.item.kind for each in Exposure.objects.all()} == {"phone", "username"}


def test_an_inactive_item_is_not_looked_up(ann, hibp, run_jobs) -> None:
    for item in items_of(ann)[:2]:
        items.set_active(ann.pk, item.pk, False)
    scan(ann, run_jobs)
    assert hibp.asked() == ["ann"]


def test_a_subscription_that_ends_ends_the_scan(ann, hibp, run_jobs) -> None:
    row = ann.plan_subscription
    hibp.before = lambda request: at_once(
        1, lambda _: plan_status.cancel([row.pk], reason="enough")
    )
    job = scan(ann, run_jobs)
    assert (job.state, len(hibp.requests)) == ("cancelled", 1)
    assert "no longer active" in job.error
    assert ItemScan.objects.count() == 1


def test_an_account_without_plan_or_gone_is_not_scanned(ann, hibp, run_jobs) -> None:
    id = ann.pk
    plan_status.cancel([ann.plan_subscription.pk], reason="enough")
    assert "no active plan" in scan(ann, run_jobs).error
    ann.delete()
    job = Job.objects.get(pk=enqueue(SCAN, {"account": id}))
    run_jobs(SCAN)
    job.refresh_from_db()
    assert (job.state, job.error) == ("skipped", "the account is closed or deleted")
    assert hibp.requests == []


def test_an_operator_ends_a_scan(ann, hibp, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(scanning, "LOOK_SECONDS", 0.0)
    cancel = Job.objects.filter(handler=SCAN)
    hibp.before = lambda request: at_once(1, lambda _: cancel.update(cancel_requested=True))
    job = scan(ann, run_jobs)
    assert (job.state, len(hibp.requests)) == ("cancelled", 1)


def test_scheduled_scans_are_in_the_account_s_lane(ann, clock) -> None:
    clock.step(7 * 3600)
    tick.run_due()
    [job] = Job.objects.filter(handler=SCAN)
    assert job.lane == str(ann.pk)
    assert Schedule.objects.filter(handler=SCAN).count() == 1


def test_a_new_source_is_one_class(ann, hibp, run_jobs) -> None:
    class Other(Source):
        """Another one, for domains"""

        name = "other"
        kinds = frozenset({"domain"})

        async def lookup(self, kind: str, value: str) -> Any:
            return [FoundBreach(name="x", title=f"Lost by {value}", data_classes=["Passwords"])]

    try:
        assert [source.name for source in all_sources()][-1] == "other"
        job = scan(ann, run_jobs)
    finally:
        Other.name = ""
    assert job.result["not_looked_up"] == {"ssn": 1}
    assert Exposure.objects.get().breach.title == "Lost by example.org"


def test_the_end_of_the_plan_cancels_scans_that_were_requested(ann) -> None:
    """In their lane, of the user and of an operator; other jobs of the account wait."""
    requested = request_scan(ann.pk, SCAN)
    answer = operator("olga").post("/jobs", {"handler": SCAN, "payload": {"account": ann.pk}})
    notices = enqueue(NOTIFICATIONS, {"account": ann.pk})
    plan_status.cancel([ann.plan_subscription.pk])
    scans = Job.objects.filter(pk__in=[requested, answer.json()["id"]])
    reason = "the subscription to the plan was cancelled"
    assert [(job.state, job.error) for job in scans] == [("cancelled", reason)] * 2
    assert Job.objects.get(pk=notices).state == "pending"
