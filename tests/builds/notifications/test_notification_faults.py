"""Faults that notifications had: items 6 and 8 of the domain's specification."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from tailrace.db import clock as events_clock
from tailrace.domains.builds.event_types.build import BuildFail
from tailrace.domains.builds.models import RoleHolder
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.history import events_for
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tests.servers.smtp import mail_server

pytestmark = pytest.mark.django_db(transaction=True)

NOTIFY_QUEUES = ("subscriptions.notify", "subscriptions.mail", "subscriptions.rss")
FAILED = {"project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64"}


def test_failures_of_mail_and_rss_are_independent(run_jobs, clock):
    """The mail server refuses one address for now: that mail alone waits, and is sent later."""
    maintainers("alice", "bob", feed_of="alice")
    run_jobs(*NOTIFY_QUEUES)  # the mail about the feed
    with mail_server() as smtp, override_settings(**smtp.settings()):
        smtp.recipient_reply = lambda address: "451 later" if "alice" in address else ""
        (event,) = publish(NewEvent(BuildFail, FAILED))
        run_jobs(*NOTIFY_QUEUES)
        jobs = Job.objects.filter(event_id=event.id)
        assert jobs.get(handler="subscriptions.rss").state == State.COMPLETED
        mails = jobs.filter(handler="subscriptions.mail")
        assert sorted(mails.values_list("state", flat=True)) == [State.COMPLETED, State.PENDING]
        smtp.recipient_reply = lambda address: ""
        clock.step(90)
        run_jobs(*NOTIFY_QUEUES)
        assert set(mails.values_list("state", flat=True)) == {State.COMPLETED}
        assert sorted(smtp.addressed()) == ["alice@example.org", "bob@example.org"]


def test_an_event_with_odd_characters_stops_no_mail(run_jobs, mailoutbox):
    maintainers("alice")
    values = FAILED | {"package": "bad\x01\x0b name\r\nBcc: eve@example.org"}
    publish([NewEvent(BuildFail, values), NewEvent(BuildFail, FAILED)])
    run_jobs(*NOTIFY_QUEUES)
    assert len(mailoutbox) == 2
    assert all("\n" not in mail.subject and mail.to == ["alice@example.org"] for mail in mailoutbox)


def test_subscriptions_find_events_and_events_subscriptions():
    maintainers("alice", "bob")
    alice = User.objects.get(username="alice")
    row = EventSubscription.objects.create(
        event_type="builds.build",
        role="maintainer",
        channel="mail",
        user=alice,
        subject_pattern="home:alice/*",
    )
    hers, other = publish(
        [NewEvent(BuildFail, FAILED), NewEvent(BuildFail, FAILED | {"project": "home:bob"})]
    )
    events = list(events_for(row, hers.recorded_at, events_clock.now() + timedelta(seconds=1)))
    assert [event.id for event in events] == [hers.id]
    assert events == [hers]
    mailed = [
        {recipient.user_id for recipient in audiences([event]) if recipient.channel == "mail"}
        for event in (hers, other)
    ]
    assert [alice.pk in users for users in mailed] == [True, False]


def maintainers(*logins, feed_of=""):
    """Make these users, maintainers of the projects of alice and bob."""
    for login in logins:
        user = User.objects.create_user(login, f"{login}@example.org")
        for project in ("home:alice", "home:bob"):
            RoleHolder.objects.create(project=project, role="maintainer", user=login)
        if login == feed_of:
            make_feed(user)
