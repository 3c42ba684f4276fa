"""tailrace.subscriptions.notifications.notify: one notification per recipient, one job per
recipient and channel."""

import pytest
from django.contrib.auth.models import Group

from tailrace.events.publish import Recorded
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.channels.mail import transport
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import (
    EventSubscription,
    FeedItem,
    GroupAddress,
    InboxItem,
    Notification,
)
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tailrace.subscriptions.notifications.notify.notifications import notify_recipients
from tests.servers.smtp import mail_server
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Premiere,
    Silence,
    assign_role,
    person,
    publish_event,
)

pytestmark = pytest.mark.django_db(transaction=True)


def jobs_of(event: Recorded, handler: str) -> list[Job]:
    return list(Job.objects.filter(event_id=event.id, handler=handler).order_by("routing_key"))


def test_only_events_with_receiver_roles_get_a_notify_job() -> None:
    assert len(jobs_of(publish_event(Premiere), "subscriptions.notify")) == 1
    assert jobs_of(publish_event(Silence), "subscriptions.notify") == []


def test_each_recipient_gets_one_job_per_channel(run_jobs) -> None:
    ann, bob = person("ann"), person("bob")
    make_feed(ann)
    assign_role(FIRST, ann, bob)
    event = publish_event()
    run_jobs("subscriptions.notify")
    mails = jobs_of(event, "subscriptions.mail")
    keys = sorted(job.routing_key for job in mails)
    assert keys == sorted([f"user:{ann.pk}", f"user:{bob.pk}"])
    assert [job.routing_key for job in jobs_of(event, "subscriptions.rss")] == [f"user:{ann.pk}"]
    notifications = Notification.objects.filter(event_id=event.id).values_list(
        "user__username", "role"
    )
    assert sorted(notifications) == [("ann", FIRST), ("bob", FIRST)]
    web = [job.routing_key for job in jobs_of(event, "subscriptions.web")]
    assert web == [f"user:{ann.pk}", f"user:{bob.pk}"]
    assert jobs_of(event, "subscriptions.notify")[0].result == {"deliveries": 5}


def test_default_rows_follow_the_flags_of_types_and_roles() -> None:
    rows = EventSubscription.objects.filter(event_type="stage.premiere", user=None, group=None)
    rows = rows.filter(channel__in=["mail", "rss", "sms"])
    assert sorted(rows.values_list("role", "channel", "state")) == [
        (FIRST, "mail", "on"),
        (FIRST, "rss", "on"),
        (FIRST, "sms", "off"),
        (SECOND, "mail", "off"),
        (SECOND, "rss", "off"),
        (SECOND, "sms", "off"),
    ]
    channels = EventSubscription.objects.filter(event_type="stage.rehearsal")
    assert set(channels.values_list("channel", flat=True)) == {"rss"}


def test_nobody_subscribed_is_skipped_with_its_reason(run_jobs) -> None:
    event = publish_event()
    run_jobs("subscriptions.notify")
    (job,) = jobs_of(event, "subscriptions.notify")
    assert (job.state, job.error) == (State.SKIPPED, "nobody is subscribed")


def test_notify_run_twice_enqueues_nothing_twice(run_jobs) -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    GroupAddress.objects.create(group=team, email="team@example.org")
    assign_role(FIRST, ann, groups=(team,))
    event = publish_event()
    for _ in range(2):
        notify_recipients(audiences([event]))
    run_jobs("subscriptions.notify")
    assert len(jobs_of(event, "subscriptions.mail")) == 2
    assert Notification.objects.filter(event_id=event.id).count() == 2


def test_a_role_that_raises_delays_only_its_own_event(run_jobs) -> None:
    from tailrace.subscriptions.types import roles

    assign_role(FIRST, person("ann"))
    good = roles.find(FIRST)

    def find(event: Recorded):
        if event.payload.note == "bad":
            raise RuntimeError("the role is broken")
        return good(event)

    roles._registry[FIRST] = roles.Role(FIRST, find)
    try:
        bad, fine = publish_event(payload={"note": "bad"}), publish_event()
        run_jobs("subscriptions.notify")
    finally:
        roles._registry[FIRST] = good
    assert jobs_of(fine, "subscriptions.notify")[0].state == State.COMPLETED
    (job,) = jobs_of(bad, "subscriptions.notify")
    assert (job.state, job.attempt) == (State.PENDING, 1)
    assert "the role is broken" in job.error


def test_someone_deactivated_after_the_event_gets_no_mail(run_jobs, mailoutbox) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    event = publish_event()
    run_jobs("subscriptions.notify")
    ann.is_active = False
    ann.save()
    run_jobs("subscriptions.mail")
    assert mailoutbox == []
    assert jobs_of(event, "subscriptions.mail")[0].state == State.SKIPPED


def test_mail_and_rss_fail_independently(run_jobs, settings) -> None:
    """The rss job of a person is done though the mail server refuses, and each has its own row."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    ann = person("ann")
    make_feed(ann)
    assign_role(FIRST, ann)
    event = publish_event()
    run_jobs("subscriptions.notify", "subscriptions.mail", "subscriptions.rss")
    assert jobs_of(event, "subscriptions.rss")[0].state == State.COMPLETED
    assert FeedItem.objects.filter(user=ann, event_id=event.id).count() == 1
    (mail,) = jobs_of(event, "subscriptions.mail")
    assert (mail.state, mail.attempt) == (State.PENDING, 0), "a server that is away costs nothing"
    assert "unavailable" in mail.attempts.get().message


def test_a_mail_server_down_for_an_hour_loses_no_mail(run_jobs, settings, clock) -> None:
    people = [person(f"p{number}") for number in range(10)]
    for user in people:
        make_feed(user)
    run_jobs()
    told_of_their_feeds = InboxItem.objects.count()
    assign_role(FIRST, *people)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    for hour in range(3):
        event = publish_event(payload={"title": f"hour {hour}"})
        for _ in range(2):
            run_jobs()
            clock.step(300)
        others = Job.objects.filter(event_id=event.id).exclude(handler="subscriptions.mail")
        assert not others.exclude(state=State.COMPLETED).exists()
    assert FeedItem.objects.count() == 30
    assert InboxItem.objects.count() - told_of_their_feeds == 30
    assert Job.objects.filter(handler="subscriptions.mail", state=State.PENDING).count() == 30
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        for _ in range(8):
            clock.step(460)
            run_jobs()
        transport.close()
    mails = Job.objects.filter(handler="subscriptions.mail")
    assert set(mails.values_list("state", flat=True)) == {State.COMPLETED}
    assert len(server.received) == 30
    assert len({mail.message["Message-ID"] for mail in server.received}) == 30


def test_an_rss_job_run_again_leaves_one_item(run_jobs) -> None:
    ann = person("ann")
    make_feed(ann)
    assign_role(FIRST, ann)
    event = publish_event()
    run_jobs("subscriptions.notify", "subscriptions.rss")
    FeedItem.objects.get(user=ann, event_id=event.id)
    Job.objects.filter(event_id=event.id, handler="subscriptions.rss").update(
        state=State.PENDING, finished_at=None, done_on=None
    )
    run_jobs("subscriptions.rss")
    assert FeedItem.objects.filter(user=ann, event_id=event.id).count() == 1
