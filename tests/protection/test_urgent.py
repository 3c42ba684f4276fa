"""Severity goes before every limit of messages, and before digests that nobody chose for it."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.findings import Finding
from tailrace.domains.protection.alerts.raising import NOTIFICATIONS, raise_alerts
from tailrace.domains.protection.models import Severity
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.push import devices
from tailrace.subscriptions.models import DigestItem, EventSubscription, Preferences
from tests.servers.browser import Browser
from tests.servers.sms import TOKEN, SmsService, sms_service
from tests.servers.web import Response, serving
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)
NOTIFY = (NOTIFICATIONS, "subscriptions.notify")
ROLE = "protected_person"


@pytest.fixture
def ann() -> User:
    user = person("ann")
    assign_role(FIRST, user)
    return user


@pytest.fixture
def texts(settings) -> Iterator[SmsService]:
    with sms_service() as running:
        settings.SMS_URL, settings.SMS_TOKEN = running.url, TOKEN
        yield running


def alert(user: User, severity: Severity = Severity.CRITICAL) -> None:
    raise_alerts([Finding(user.pk, "lien_filing", "property:1", severity)])


def alert_event() -> Event:
    return Event.objects.get(type__startswith="protection.alert_")


def subjects(smtp) -> list[str]:
    return [mail.message["Subject"] for mail in smtp.received]


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.CRITICAL])
def test_an_alert_is_mailed_at_once_after_a_burst_of_other_mails(
    ann, run_jobs, smtp, settings, severity: Severity
) -> None:
    for _ in range(settings.MAIL_BURST + 3):
        publish_event()
    run_jobs(*NOTIFY)
    alert(ann, severity)
    run_jobs(*NOTIFY, "subscriptions.mail")
    assert not DigestItem.objects.filter(event=alert_event().pk).exists()
    assert subjects(smtp).count("A lien or mortgage was filed against your property") == 1
    assert DigestItem.objects.count() == 3
    why = words(Visitor(ann).get(f"/me/why/{alert_event().pk}"))
    assert "urgent: sent at once, and no limit of messages applies" in why


def test_alerts_do_not_use_up_what_others_may_send(ann, run_jobs, settings) -> None:
    settings.MAIL_BURST = 1
    alert(ann)
    run_jobs(*NOTIFY)
    publish_event()
    run_jobs(*NOTIFY)
    assert not DigestItem.objects.exists()


def test_an_alert_is_sent_before_what_waits(ann, run_jobs) -> None:
    publish_event()
    alert(ann)
    run_jobs(*NOTIFY)
    jobs = Job.objects.filter(handler="subscriptions.mail").order_by("priority")
    assert jobs[0].event_id == alert_event().pk
    assert jobs[0].priority < jobs[1].priority


@pytest.mark.parametrize(
    ("event_type", "own", "waits"),
    [
        ("*", True, False),
        ("protection.alert_raised", False, False),
        ("protection.alert_event", True, True),
        ("protection.alert_raised", True, True),
    ],
)
def test_a_digest_counts_only_if_the_person_chose_it_for_alerts(
    ann, run_jobs, event_type: str, own: bool, waits: bool
) -> None:
    if own:
        subscribe(event_type, ROLE, "mail", user=ann, pace="daily")
    else:  # the default, as an operator edits it
        EventSubscription.objects.filter(
            event_type=event_type, role=ROLE, channel="mail", user=None
        ).update(pace="daily")
    alert(ann)
    run_jobs(*NOTIFY)
    assert DigestItem.objects.exists() is waits
    assert Job.objects.filter(handler="subscriptions.mail").exists() is not waits
    why = words(Visitor(ann).get(f"/me/why/{alert_event().pk}"))
    assert ("sent at once, not daily, since nobody chose that for it" in why) is not waits


def test_off_stays_off(ann, run_jobs) -> None:
    subscribe("*", ROLE, "mail", user=ann, state="off")
    alert(ann)
    run_jobs(*NOTIFY)
    assert not Job.objects.filter(handler="subscriptions.mail").exists()


def test_an_info_waits_for_the_digest(ann, run_jobs) -> None:
    alert(ann, Severity.INFO)
    run_jobs(*NOTIFY)
    assert DigestItem.objects.count() == 1


def test_texts_of_others_do_not_use_up_the_limit_of_alerts(ann, run_jobs, texts, settings) -> None:
    settings.SMS_PER_DAY = 2
    number = "+4930123456"
    Preferences.objects.create(user=ann, phone=number, confirmed_phone=number)
    subscribe(channel="sms", user=ann)
    subscribe("protection.alert_raised", ROLE, "sms", user=ann)
    for _ in range(3):
        publish_event()
    run_jobs(*NOTIFY, "subscriptions.sms")
    assert len(texts.texts) == 2
    alert(ann)
    run_jobs(*NOTIFY, "subscriptions.sms")
    assert len(texts.texts) == 3
    assert texts.texts[-1]["Body"].startswith("A lien or mortgage was filed")


def test_a_push_service_sends_an_alert_to_a_phone_that_saves_power(ann, run_jobs, settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with serving(lambda request: Response(201)) as server:
        browser = Browser()
        devices.add(ann, f"{server.url}/1", browser.p256dh, browser.auth, "Firefox")
        publish_event()
        alert(ann)
        run_jobs(*NOTIFY, "subscriptions.push")
    urgency = [request.headers["urgency"] for request in server.requests]
    assert sorted(urgency) == ["high", "normal"]
