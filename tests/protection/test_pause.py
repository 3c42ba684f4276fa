"""The pause bounds the number of notices, never what a person learns."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.models import Alert, Exposure
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.events.models import Event
from tests.protection.kit import customer, scan
from tests.servers.hibp import HibpService, make_breach
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
NOTICES = (NOTIFICATIONS, "subscriptions.notify", "subscriptions.mail", "subscriptions.web")
EMAIL, PHONE = "ann@example.org", "+12125550100"
PAUSE = 86_400


@pytest.fixture
def ann(hibp: HibpService) -> User:
    """A customer who watches an address, a phone and a user name."""
    user = customer("ann")
    for kind, text in (("email", EMAIL), ("phone", PHONE), ("username", "ann")):
        items.add(user.pk, kind, text)
    return user


def leaks(hibp: HibpService) -> None:
    """Two leaks of the address, a critical one of the phone, and one of the user name."""
    hibp.add(make_breach("Acme", "Email addresses", "Passwords"), EMAIL)
    hibp.add(make_breach("Nums", "Email addresses"), EMAIL)
    hibp.add(make_breach("Phony", "Phone numbers", "Credit cards"), PHONE)
    hibp.add(make_breach("Handles", "Usernames"), "ann")


def named() -> list[list[str]]:
    """Return the leaks that each notice names, in the order of the notices."""
    events = Event.objects.filter(type__startswith="protection.alert").order_by("id")
    return [sorted(event.payload["details"]["breaches"]) for event in events]


def texts(smtp: Any) -> str:
    return "\n".join(mail.message.get_body(["plain"]).get_content() for mail in smtp.received)


def test_one_scan_names_all_that_it_found(ann, hibp, run_jobs, smtp) -> None:
    leaks(hibp)
    scan(ann, run_jobs)
    run_jobs(*NOTICES)
    assert named() == [["Acme", "Handles", "Nums", "Phony"]]
    assert "Concerns: Acme, Nums, Phony, Handles" in texts(smtp)
    [alert] = Alert.objects.all()
    assert alert.details["exposures"] == 4
    page = Visitor(ann).get("/protection/").content.decode()
    assert "Acme, Nums, Phony, Handles" in page


def test_what_waits_for_the_end_of_the_pause_is_sent_in_one_notice(
    ann, hibp, run_jobs, clock
) -> None:
    hibp.add(make_breach("Nums", "Email addresses"), EMAIL)
    scan(ann, run_jobs)
    run_jobs(*NOTICES)
    for name, hours in (("Second", 1), ("Third", 2)):
        clock.step(hours * 3600)
        hibp.add(make_breach(name, "Usernames"), "ann")
        scan(ann, run_jobs)
        run_jobs(*NOTICES)
    assert named() == [["Nums"]]
    [alert] = Alert.objects.all()
    assert alert.details["breaches"] == ["Nums", "Second", "Third"], "the page names them at once"
    clock.step(PAUSE)
    scan(ann, run_jobs)  # finds nothing new
    run_jobs(*NOTICES)
    assert named() == [["Nums"], ["Second", "Third"]]
    clock.step(PAUSE)
    scan(ann, run_jobs)
    run_jobs(*NOTICES)
    assert len(named()) == 2


def test_a_critical_leak_within_a_critical_pause_is_sent_at_once(
    ann, hibp, run_jobs, smtp, clock
) -> None:
    """Also one that monitoring finds between two scans; and what waited is sent with it."""
    hibp.add(make_breach("Acme", "Passwords"), EMAIL)
    scan(ann, run_jobs)
    run_jobs(*NOTICES)
    clock.step(3600)
    hibp.add(make_breach("Handles", "Usernames"), "ann")
    scan(ann, run_jobs)
    run_jobs(*NOTICES)
    assert named() == [["Acme"]]
    clock.step(3600)
    hibp.add(make_breach("Phony", "Credit cards"), PHONE)
    from tailrace.db.query import database_now
    from tailrace.domains.protection.services.scanning.payload import enqueue_scans

    enqueue_scans([ann.pk], database_now(), ["hibp_breaches"])
    run_jobs(SCAN)
    run_jobs(*NOTICES)
    assert named() == [["Acme"], ["Handles", "Phony"]]
    assert "Concerns: Handles, Phony" in texts(smtp) or "Concerns: Phony, Handles" in texts(smtp)
    clock.step(PAUSE)
    run_jobs(*NOTICES)
    assert len(named()) == 2, "nothing is left for the end of the pause"
    assert Exposure.objects.count() == 3
