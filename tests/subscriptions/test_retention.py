"""How long notifications and deliveries are kept; those of a pending digest stay."""

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from tailrace.db import clock as events_clock
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.models import Job
from tailrace.jobs.runtime import invariant
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.models import (
    Delivery,
    Digest,
    DigestItem,
    Endpoint,
    InboxItem,
    Notification,
)
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 86_400


def sweep() -> int:
    """Let every invariant of subscriptions find and repair once; return how many rows."""
    return sum(
        rule.repair(gaps)
        for rule in invariant.all_invariants()
        if rule.name.startswith("subscriptions.") and (gaps := rule.find())
    )


def test_an_event_is_kept_as_long_as_its_notifications(run_jobs, clock, settings: Settings) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    notified = publish_event()
    run_jobs()
    assign_role(FIRST)
    untold = publish_event()
    run_jobs()
    clock.step(91 * DAY)
    prune.prune()
    assert set(Event.objects.values_list("id", flat=True)) == {notified.id}, untold
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


def test_a_digest_without_a_job_gets_one_unless_it_failed(smtp, run_jobs, clock) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    publish_event()
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
