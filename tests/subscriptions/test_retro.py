"""Retro-delivery: what a repaired subscription should have brought comes once, after a dry run."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from events import clock as events_clock
from subscriptions.models import EventSubscription
from tests.subscriptions.stage import FIRST, happen, hold, person, subscribe

pytestmark = pytest.mark.django_db(transaction=True)


def say(*words: str) -> str:
    out = StringIO()
    call_command("retro", *words, stdout=out)
    return out.getvalue().splitlines()[-1]


def test_what_was_missed_comes_once(smtp, run_jobs, clock) -> None:
    ann, bob = person("ann"), person("bob")
    hold(FIRST, ann, bob)
    row = subscribe("stage.premiere", FIRST, "mail", user=ann, state="off")
    for number in range(3):
        happen(payload={"title": f"Play {number}"})
    run_jobs()
    assert smtp.addressed() == ["bob@example.org"] * 3
    row.state = "on"
    row.save()
    happen(payload={"title": "Play 3"})
    run_jobs()
    assert say(str(row.pk)) == "4 events; 1 deliveries were made before, 3 would be owed"
    run_jobs()
    assert smtp.addressed().count("ann@example.org") == 1
    assert say(str(row.pk), "--deliver").endswith("3 are owed now")
    assert say(str(row.pk), "--deliver").endswith("0 are owed now")
    run_jobs()
    mails = [one.message["Subject"] for one in smtp.received if "ann" in one.recipients[0]]
    assert len(mails) == len(set(mails)) == 4


def test_what_a_row_does_not_decide_it_does_not_bring(run_jobs) -> None:
    ann = person("ann")
    hold(FIRST, ann)
    default = EventSubscription.objects.get(
        event_type="stage.premiere", role=FIRST, channel="mail", user=None, group=None
    )
    subscribe("stage.premiere", FIRST, "mail", user=ann, pace="daily")
    happen()
    run_jobs()
    assert say(str(default.pk)).startswith("0 events")


def test_bad_input_is_named(clock) -> None:
    row = subscribe("stage.premiere", FIRST, "mail", user=person("ann"))
    with pytest.raises(CommandError, match="there is no subscription 0"):
        say("0")
    with pytest.raises(CommandError, match="--days -1 is not above 0"):
        say(str(row.pk), "--days=-1")
    with pytest.raises(CommandError, match="JOBS_RETENTION_DAYS"):
        say(str(row.pk), "--days=31")


def test_an_operator_looks_and_then_delivers_on_the_rows_page(
    smtp, run_jobs, admin_client: Client, admin_user: User
) -> None:
    ann = person("ann")
    row = subscribe("stage.premiere", FIRST, "mail", user=ann)
    event = happen(payload={"title": "Faust"})
    run_jobs()
    hold(FIRST, ann)
    page = f"/admin/subscriptions/eventsubscription/{row.pk}/change/"
    answer = admin_client.get(page, {"days": "7"})
    assert "1 delivery would be owed" in answer.text
    assert f"event {event.id}" in answer.text
    assert smtp.received == []
    post = f"/admin/subscriptions/eventsubscription/{row.pk}/retro/"
    assert admin_client.get(post).status_code == 405
    answer = admin_client.post(post, {"days": "7"}, follow=True)
    assert "1 delivery is owed now" in answer.text
    run_jobs()
    assert smtp.addressed() == ["ann@example.org"]
    assert "is above 0" in admin_client.get(page, {"days": "x"}).text
    assert "JOBS_RETENTION_DAYS" in admin_client.get(page, {"days": "99"}).text
    assert events_clock.now() - timedelta(days=99) < events_clock.now()


def test_it_takes_a_permission(client: Client) -> None:
    row = subscribe("stage.premiere", FIRST, "mail", user=person("ann"))
    stranger = User.objects.create_user("eve", is_staff=True)
    client.force_login(stranger)
    post = f"/admin/subscriptions/eventsubscription/{row.pk}/retro/"
    assert client.post(post, {"days": "7"}).status_code == 403
