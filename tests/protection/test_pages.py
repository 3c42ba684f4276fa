"""The pages of a customer, as a browser without scripts sees them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from domains.protection.alerts import Finding, raise_alerts
from domains.protection.models import Severity
from tests.subscriptions.sample_domain import person
from tests.web.program import Program
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
    raise_alerts(findings, timedelta(hours=24))


def test_an_empty_overview_says_how_to_begin(ann) -> None:
    text = Visitor(ann).text("/protection/")
    assert "You watch nothing yet." in text
    assert "You have no plan yet, so nothing is scanned." in text
    assert "No alerts." in text


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
    assert listed[0]["title"] == "Your data stands in a leak"
    assert Program(person("eve"), "protection:read").all("/protection/alerts") == []
