"""What a repaired subscription missed is delivered once, after a dry run."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client

from tailrace.db import clock as events_clock
from tailrace.events.management.subcommands import call_subcommand
from tailrace.subscriptions.models import EventSubscription
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe

pytestmark = pytest.mark.django_db(transaction=True)


def run_command(*words: str) -> str:
    out = StringIO()
    call_subcommand("catch_up", *words, stdout=out)
    return out.getvalue().splitlines()[-1]


def test_a_missed_delivery_is_made_once(smtp, run_jobs, clock) -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann, bob)
    row = subscribe("stage.premiere", FIRST, "mail", user=ann, state="off")
    for number in range(3):
        publish_event(payload={"title": f"Play {number}"})
    run_jobs()
    assert smtp.addressed() == ["bob@example.org"] * 3
    row.state = "on"
    row.save()
    publish_event(payload={"title": "Play 3"})
    run_jobs()
    assert run_command(str(row.pk)) == "4 events: 1 already delivered, 3 missing"
    run_jobs()
    assert smtp.addressed().count("ann@example.org") == 1
    assert run_command(str(row.pk), "--deliver").endswith("3 enqueued")
    assert run_command(str(row.pk), "--deliver").endswith("0 enqueued")
    run_jobs()
    mails = [mail.message["Subject"] for mail in smtp.received if "ann" in mail.recipients[0]]
    assert len(mails) == len(set(mails)) == 4


def test_another_subscriptions_deliveries_are_not_counted(run_jobs) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    default = EventSubscription.objects.get(
        event_type="stage.premiere", role=FIRST, channel="mail", user=None, group=None
    )
    subscribe("stage.premiere", FIRST, "mail", user=ann, pace="daily")
    publish_event()
    run_jobs()
    assert run_command(str(default.pk)).startswith("0 events")


def test_bad_input_is_an_error(clock) -> None:
    row = subscribe("stage.premiere", FIRST, "mail", user=person("ann"))
    with pytest.raises(CommandError, match="there is no subscription 0"):
        run_command("0")
    with pytest.raises(CommandError, match="'-1' is not a number of days above 0"):
        run_command(str(row.pk), "--days=-1")
    with pytest.raises(CommandError, match="JOBS_RETENTION_DAYS"):
        run_command(str(row.pk), "--days=31")


def test_an_operator_counts_and_delivers_in_the_admin(
    smtp, run_jobs, admin_client: Client, admin_user: User
) -> None:
    ann = person("ann")
    row = subscribe("stage.premiere", FIRST, "mail", user=ann)
    event = publish_event(payload={"title": "Faust"})
    run_jobs()
    assign_role(FIRST, ann)
    page = f"/admin/tailrace_subscriptions/eventsubscription/{row.pk}/change/"
    answer = admin_client.get(page, {"days": "7"})
    assert "1 delivery is missing" in answer.text
    assert f"event {event.id}" in answer.text
    assert smtp.received == []
    post = f"/admin/tailrace_subscriptions/eventsubscription/{row.pk}/catch_up/"
    assert admin_client.get(post).status_code == 405
    answer = admin_client.post(post, {"days": "7"}, follow=True)
    assert "1 delivery enqueued" in answer.text
    run_jobs()
    assert smtp.addressed() == ["ann@example.org"]
    assert "days above 0" in admin_client.get(page, {"days": "x"}).text
    assert "JOBS_RETENTION_DAYS" in admin_client.get(page, {"days": "99"}).text
    assert events_clock.now() - timedelta(days=99) < events_clock.now()


def test_catching_up_needs_a_permission(client: Client) -> None:
    row = subscribe("stage.premiere", FIRST, "mail", user=person("ann"))
    stranger = User.objects.create_user("eve", is_staff=True)
    client.force_login(stranger)
    post = f"/admin/tailrace_subscriptions/eventsubscription/{row.pk}/catch_up/"
    assert client.post(post, {"days": "7"}).status_code == 403
