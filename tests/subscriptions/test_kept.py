"""How long notifications and deliveries are kept, and that nobody's digest is forgotten."""

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from events import clock as events_clock
from events.models import Event
from jobs import invariants, prune
from jobs.models import Job
from jobs.states import State
from subscriptions.models import Delivery, Digest, DigestItem, Endpoint, InboxItem, Notification
from tests.subscriptions.stage import FIRST, happen, hold, person, subscribe

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 86_400


def sweep() -> int:
    """Let every invariant of subscriptions find and repair once; return how many rows."""
    return sum(
        one.repair(found)
        for one in invariants.everything()
        if one.name.startswith("subscriptions.") and (found := one.find())
    )


def test_an_event_stays_for_as_long_as_somebodys_notification_of_it(
    run_jobs, clock, settings: Settings
) -> None:
    ann = person("ann")
    hold(FIRST, ann)
    told = happen()
    run_jobs()
    hold(FIRST)
    untold = happen()
    run_jobs()
    clock.step(91 * DAY)
    prune.prune()
    assert set(Event.objects.values_list("id", flat=True)) == {told.id}, untold
    assert sweep() == 0
    clock.step(275 * DAY)
    assert sweep() == 2
    assert not Notification.objects.exists()
    assert not InboxItem.objects.exists()
    prune.prune()
    assert not Event.objects.exists()


def test_deliveries_are_kept_for_a_month(clock) -> None:
    endpoint = Endpoint.objects.create(user=person("ann"), url="https://x.example/", secret="-")
    for days in (0, 29, 31):
        Delivery.objects.create(
            endpoint=endpoint, message_id="m", attempt=1, milliseconds=1, outcome="ok",
            at=events_clock.now() - timedelta(days=days),
        )  # fmt: skip
    assert sweep() == 1
    assert Delivery.objects.count() == 2


def test_a_digest_whose_job_is_lost_is_owed_again_but_not_one_that_failed(
    smtp, run_jobs, clock
) -> None:
    ann = person("ann")
    hold(FIRST, ann)
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    happen()
    run_jobs("subscriptions.notify")
    clock.step(3601)
    assert sweep() == 0
    jobs = Job.objects.filter(handler="subscriptions.digest")
    jobs.update(state=State.FAILED, finished_at=events_clock.now())
    assert sweep() == 0
    jobs.update(state=State.CANCELLED)
    assert sweep() == 0
    jobs.delete()
    assert sweep() == 1
    run_jobs("subscriptions.digest")
    assert smtp.addressed() == ["ann@example.org"]
    assert Digest.objects.get().sent_at is not None
    assert DigestItem.objects.count() == 1
    assert sweep() == 0
