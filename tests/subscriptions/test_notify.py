"""subscriptions.notify: one notification per recipient, one job per recipient and channel."""

import pytest
from django.contrib.auth.models import Group

from events.publish import Recorded
from jobs.models import Job
from jobs.states import State
from subscriptions.audience import audience
from subscriptions.feeds import make_feed
from subscriptions.handlers import record
from subscriptions.models import EventSubscription, FeedItem, GroupAddress, Notification
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
    assert jobs_of(event, "subscriptions.notify")[0].result == {"deliveries": 3}


def test_the_default_rows_come_from_the_flags_of_types_and_roles() -> None:
    rows = EventSubscription.objects.filter(event_type="stage.premiere", user=None, group=None)
    assert sorted(rows.values_list("role", "channel", "state")) == [
        (FIRST, "mail", "on"),
        (FIRST, "rss", "on"),
        (SECOND, "mail", "off"),
        (SECOND, "rss", "off"),
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
    assert (mail.state, mail.attempt) == (State.PENDING, 1)
    assert "away" in mail.error


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
