"""subscriptions.notify: one notification per recipient, one job per recipient and channel."""

import pytest
from django.contrib.auth.models import Group

from events.publish import Recorded
from jobs.models import Job
from jobs.states import State
from subscriptions import outbox
from subscriptions.audience import audience
from subscriptions.feeds import make_feed
from subscriptions.handlers import record
from subscriptions.models import EventSubscription, FeedItem, GroupAddress, InboxItem, Notification
from tests.servers.smtp import mail_server
from tests.subscriptions.stage import FIRST, SECOND, Premiere, Silence, happen, hold, person

pytestmark = pytest.mark.django_db(transaction=True)


def jobs_of(event: Recorded, handler: str) -> list[Job]:
    return list(Job.objects.filter(event_id=event.id, handler=handler).order_by("routing_key"))


def test_an_event_owes_notify_only_if_somebody_may_hear_of_it() -> None:
    assert len(jobs_of(happen(Premiere), "subscriptions.notify")) == 1
    assert jobs_of(happen(Silence), "subscriptions.notify") == []


def test_each_recipient_gets_one_job_per_channel(run_jobs) -> None:
    ann, bob = person("ann"), person("bob")
    make_feed(ann)
    hold(FIRST, ann, bob)
    event = happen()
    run_jobs("subscriptions.notify")
    mails = jobs_of(event, "subscriptions.mail")
    assert [job.routing_key for job in mails] == [f"user:{ann.pk}", f"user:{bob.pk}"]
    assert [job.routing_key for job in jobs_of(event, "subscriptions.rss")] == [f"user:{ann.pk}"]
    told = Notification.objects.filter(event_id=event.id).values_list("user__username", "role")
    assert sorted(told) == [("ann", FIRST), ("bob", FIRST)]
    web = [job.routing_key for job in jobs_of(event, "subscriptions.web")]
    assert web == [f"user:{ann.pk}", f"user:{bob.pk}"]
    assert jobs_of(event, "subscriptions.notify")[0].result == {"deliveries": 5}


def test_the_default_rows_come_from_the_flags_of_types_and_roles() -> None:
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
    event = happen()
    run_jobs("subscriptions.notify")
    (job,) = jobs_of(event, "subscriptions.notify")
    assert (job.state, job.error) == (State.SKIPPED, "nobody is subscribed")


def test_notify_run_twice_owes_nothing_twice(run_jobs) -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    GroupAddress.objects.create(group=team, email="team@example.org")
    hold(FIRST, ann, groups=(team,))
    event = happen()
    for _ in range(2):
        record(audience(event))
    run_jobs("subscriptions.notify")
    assert len(jobs_of(event, "subscriptions.mail")) == 2
    assert Notification.objects.filter(event_id=event.id).count() == 2


def test_a_role_that_raises_delays_its_own_event_alone(run_jobs) -> None:
    from subscriptions import roles

    hold(FIRST, person("ann"))
    good = roles.get(FIRST)

    def find(event: Recorded):
        if event.payload.get("note") == "bad":
            raise RuntimeError("the role cannot be told")
        return good(event)

    roles._registry[FIRST] = roles.Role(FIRST, find)
    try:
        bad, fine = happen(payload={"note": "bad"}), happen()
        run_jobs("subscriptions.notify")
    finally:
        roles._registry[FIRST] = good
    assert jobs_of(fine, "subscriptions.notify")[0].state == State.COMPLETED
    (job,) = jobs_of(bad, "subscriptions.notify")
    assert (job.state, job.attempt) == (State.PENDING, 1)
    assert "the role cannot be told" in job.error


def test_someone_deactivated_after_the_event_gets_no_mail(run_jobs, mailoutbox) -> None:
    ann = person("ann")
    hold(FIRST, ann)
    event = happen()
    run_jobs("subscriptions.notify")
    ann.is_active = False
    ann.save()
    run_jobs("subscriptions.mail")
    assert mailoutbox == []
    assert jobs_of(event, "subscriptions.mail")[0].state == State.SKIPPED


def test_mail_and_rss_fail_apart(run_jobs, settings) -> None:
    """The rss job of a person is done though the mail server refuses, and each has its own row."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    ann = person("ann")
    make_feed(ann)
    hold(FIRST, ann)
    event = happen()
    run_jobs("subscriptions.notify", "subscriptions.mail", "subscriptions.rss")
    assert jobs_of(event, "subscriptions.rss")[0].state == State.COMPLETED
    assert FeedItem.objects.filter(user=ann, event_id=event.id).count() == 1
    (mail,) = jobs_of(event, "subscriptions.mail")
    assert (mail.state, mail.attempt) == (State.PENDING, 0), "a server that is away costs nothing"
    assert "away" in mail.attempts.get().message


def test_a_mail_server_away_for_an_hour_costs_no_mail_and_nobody_else_waits(
    run_jobs, settings, clock
) -> None:
    people = [person(f"p{number}") for number in range(10)]
    for one in people:
        make_feed(one)
    hold(FIRST, *people)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    for hour in range(6):
        event = happen(payload={"title": f"hour {hour}"})
        for _ in range(2):
            run_jobs()
            clock.step(300)
        others = Job.objects.filter(event_id=event.id).exclude(handler="subscriptions.mail")
        assert not others.exclude(state=State.COMPLETED).exists()
    assert FeedItem.objects.count() == 60
    assert InboxItem.objects.count() == 60
    assert Job.objects.filter(handler="subscriptions.mail", state=State.PENDING).count() == 60
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        for _ in range(4):
            clock.step(460)
            run_jobs()
        outbox.close()
    mails = Job.objects.filter(handler="subscriptions.mail")
    assert set(mails.values_list("state", flat=True)) == {State.COMPLETED}
    assert len(server.received) == 60
    assert len({one.message["Message-ID"] for one in server.received}) == 60


def test_an_rss_job_run_again_leaves_one_item(run_jobs) -> None:
    ann = person("ann")
    make_feed(ann)
    hold(FIRST, ann)
    event = happen()
    run_jobs("subscriptions.notify", "subscriptions.rss")
    FeedItem.objects.get(user=ann, event_id=event.id)
    Job.objects.filter(event_id=event.id, handler="subscriptions.rss").update(
        state=State.PENDING, finished_at=None
    )
    run_jobs("subscriptions.rss")
    assert FeedItem.objects.filter(user=ann, event_id=event.id).count() == 1
