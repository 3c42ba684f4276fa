"""Alerts are announced to their person alone: the bad ones at once, the others in the digest."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS, Finding, raise_alerts
from tailrace.domains.protection.alerts.texts import TEXTS, names_of, text_of
from tailrace.domains.protection.event_types import AlertNoted
from tailrace.domains.protection.models import Severity
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import DigestItem, InboxItem
from tailrace.web.accounts.deletion import delete_account
from tests.security.remains import rows_with
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
QUEUES = (NOTIFICATIONS, "subscriptions.notify", "subscriptions.mail", "subscriptions.web")


@pytest.fixture
def ann() -> User:
    User.objects.create_user("bob", "bob@example.org")
    return User.objects.create_user("ann", "ann@example.org")


def alert(user: User, severity: Severity, kind: str = "exposure", **details: object) -> None:
    raise_alerts([Finding(user.pk, kind, f"test {severity}", severity, details)])


def test_a_warning_is_mailed_at_once_and_an_info_waits_for_the_digest(ann, run_jobs, smtp) -> None:
    alert(ann, Severity.CRITICAL, breaches=["Adobe", "LinkedIn"])
    alert(ann, Severity.INFO, kind="tax_change")
    run_jobs(*QUEUES)
    [mail] = smtp.received
    assert mail.recipients == ["ann@example.org"]
    assert mail.message["Subject"] == "Your data was found in a leak"
    text = mail.message.get_body(["plain"]).get_content()
    assert "Concerns: Adobe, LinkedIn" in text
    assert "What to do: Check which data was lost, and follow the advice there." in text
    assert "/protection/exposures" in text
    [item] = DigestItem.objects.all()
    assert Event.objects.get(pk=item.event_id).type == AlertNoted.name
    assert {item.user_id for item in InboxItem.objects.all()} == {ann.pk}
    assert InboxItem.objects.count() == 2
    assert not Job.objects.filter(handler__in=["subscriptions.rss", "subscriptions.sms"]).exists()


def test_every_kind_has_words_and_an_unknown_one_too() -> None:
    for kind in [*TEXTS, "new_kind", ""]:
        text = text_of(kind)
        assert text.title
        assert text.to_do
        assert text.path.startswith("/protection/")
    assert text_of("new_kind").title == "Protection: new kind"
    many = {"breaches": [f"leak {number}" for number in range(7)], "value": "ann@example.org"}
    assert names_of("exposure", many) == "leak 0, leak 1, leak 2, leak 3, leak 4 and 2 more"
    assert names_of("exposure", {"breaches": 3}) == ""


def test_what_a_source_names_is_escaped(ann, run_jobs, smtp) -> None:
    alert(ann, Severity.WARNING, breaches=["<script>alert(1)</script>"])
    run_jobs(*QUEUES)
    assert "<script" not in smtp.received[0].message.get_body(["html"]).get_content()
    page = Visitor(ann).get("/protection/").content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_events_of_a_deleted_account_say_nothing_of_it(ann, run_jobs) -> None:
    alert(ann, Severity.WARNING, breaches=["A leak of nobody else"])
    run_jobs(NOTIFICATIONS)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert delete_account(ann.pk)
    [event] = Event.objects.filter(type="protection.alert_raised")
    assert set(event.payload) == {"alert"}
    assert rows_with("A leak of nobody else") == []
