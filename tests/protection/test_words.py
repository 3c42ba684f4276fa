"""What customers read of their alerts and their plan."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.findings import PROPERTY_CHANGES, Finding
from tailrace.domains.protection.alerts.raising import NOTIFICATIONS, raise_alerts
from tailrace.domains.protection.models import Severity
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.events.models import Event
from tailrace.subscriptions.models import PlanJob
from tests.protection.kit import customer, scan, watch_property
from tests.servers.hibp import HibpService, make_breach
from tests.subscriptions.sample_domain import person
from tests.web.program import Program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
NOTICES = (NOTIFICATIONS, "subscriptions.notify", "subscriptions.mail")
PROPERTY = "Brooklyn, block 10, lot 20"


def mailed(run_jobs, smtp) -> tuple[str, str]:
    """Send the notices; return the text and the HTML of the only mail."""
    run_jobs(*NOTICES)
    [mail] = smtp.received
    return tuple(mail.message.get_body([kind]).get_content() for kind in ("plain", "html"))


@pytest.mark.parametrize(
    ("handler", "title"),
    [
        (SCAN, "Dark-web scan"),
        ("protection.hometitle_scan", "Property records scan"),
        ("protection.reports_generate", "Report"),
        ("builds.nightly_check", "Nightly check"),
    ],
)
def test_jobs_of_plans_have_names_that_people_know(handler: str, title: str) -> None:
    assert PlanJob(handler=handler).title == title


def test_pages_use_these_names() -> None:
    browser = Visitor(customer("ann"))
    for page in ("/protection/", "/me/plan"):
        assert "Dark-web scan" in browser.text(page)


@pytest.fixture
def changed() -> User:
    """A user whose property has a new lien."""
    user = person("bob")
    change = watch_property(user)
    raise_alerts(PROPERTY_CHANGES.findings([change.pk]))
    return user


def test_an_alert_about_a_property_names_the_property(changed, run_jobs, smtp) -> None:
    text, html = mailed(run_jobs, smtp)
    for where in (text, html, Visitor(changed).text("/protection/")):
        assert f"{PROPERTY} (document 1)" in where
    [listed] = Program(changed, "protection:read").all("/protection/alerts")
    assert listed["names"] == f"{PROPERTY} (document 1)"


def test_the_address_is_in_no_event(changed, run_jobs) -> None:
    """Operators read events, and may not see where customers live."""
    run_jobs(NOTIFICATIONS)
    event = Event.objects.get(type="protection.alert_raised")
    assert "Brooklyn" not in str(event.payload)
    changed.watched_properties.all().delete()
    assert "<p>document 1</p>" in Visitor(changed).get("/protection/").content.decode()


@pytest.mark.parametrize(
    ("lost", "advice", "other"),
    [
        ("Phone numbers", "Expect fraudulent calls", "password"),
        ("Credit cards", "Ask the bank to replace the card", "password"),
        ("Passwords", "Change the password of this site", "bank"),
    ],
)
def test_the_advice_fits_the_lost_data(
    hibp: HibpService, run_jobs, smtp, lost: str, advice: str, other: str
) -> None:
    ann = customer("ann")
    items.add(ann.pk, "username", "ann")
    hibp.add(make_breach("Acme", lost), "ann")
    scan(ann, run_jobs)
    text, html = mailed(run_jobs, smtp)
    [listed] = Program(ann, "protection:read").all("/protection/alerts")
    page = Visitor(ann).text("/protection/")
    for where in (text, html, listed["to_do"], page):
        assert advice in where
        assert other not in where


def test_a_mail_has_its_link_once(run_jobs, smtp) -> None:
    raise_alerts([Finding(person("ann").pk, "exposure", "hibp", Severity.CRITICAL)])
    text, html = mailed(run_jobs, smtp)
    assert text.count("/protection/exposures") == 1
    assert html.count('href="http://127.0.0.1:8000/protection/exposures"') == 1
