"""Digests: what is not mailed at once comes in one mail at the end of its window, once."""

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group

from tailrace.db import clock as events_clock
from tailrace.events.readers import UNDECIDED, Readers
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.mail import digests
from tailrace.subscriptions.channels.mail.digests import window_end
from tailrace.subscriptions.models import Digest, DigestItem, GroupAddress, Preferences
from tests.subscriptions.sample_domain import (
    FIRST,
    Gala,
    Premiere,
    assign_role,
    person,
    publish_event,
    readers,
    subscribe,
)

pytestmark = pytest.mark.django_db(transaction=True)


def mails(smtp) -> list:
    return [mail.message for mail in smtp.received]


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("now", "pace", "zone", "end"),
    [
        ("2026-03-10T12:34", "hourly", "Asia/Kathmandu", "2026-03-10T13:00"),
        ("2026-03-10T07:59", "daily", "UTC", "2026-03-10T08:00"),
        ("2026-03-10T08:00", "daily", "UTC", "2026-03-11T08:00"),
        ("2026-03-10T12:00", "daily", "Europe/Berlin", "2026-03-11T07:00"),
        # Clocks go forward on 29 March 2026 and back on 25 October 2026: a day of 23 and of 25 h.
        ("2026-03-28T12:00", "daily", "Europe/Berlin", "2026-03-29T06:00"),
        ("2026-10-24T12:00", "daily", "Europe/Berlin", "2026-10-25T07:00"),
        ("2026-03-10T12:00", "weekly", "UTC", "2026-03-16T08:00"),
        ("2026-03-16T07:00", "weekly", "UTC", "2026-03-16T08:00"),
        ("2026-03-16T09:00", "weekly", "UTC", "2026-03-23T08:00"),
    ],
)
def test_a_window_ends_by_the_clock_on_the_wall(now, pace, zone, end) -> None:
    assert window_end(at(now), pace, Preferences(time_zone=zone)) == at(end)


@pytest.mark.parametrize("hour", [time(2, 30), time(8), time(0)])
def test_every_day_has_one_window_whatever_the_clocks_do(hour: time) -> None:
    mine = Preferences(time_zone="Europe/Berlin", digest_at=hour)
    for first in ("2026-03-27T12:00", "2026-10-23T12:00"):
        ends = [at(first)]
        for _ in range(4):
            ends.append(window_end(ends[-1], "daily", mine))
        days = [end.astimezone(ZoneInfo("Europe/Berlin")).date() for end in ends[1:]]
        assert len(set(days)) == 4
        gaps = {(b - a).total_seconds() / 3600 for a, b in pairwise(ends[1:])}
        assert gaps <= {23, 24, 25}


def test_a_daily_digest_has_counts_and_the_first_20_events(smtp, run_jobs, clock) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("stage.premiere", FIRST, "mail", user=ann, pace="daily")
    for number in range(23):
        publish_event(payload={"title": f"Play {number}"})
    run_jobs("subscriptions.notify", "subscriptions.mail", "subscriptions.digest")
    assert smtp.received == []
    (digest,) = Digest.objects.all()
    assert digest.window_end > events_clock.now()
    clock.step(25 * 3600)
    run_jobs("subscriptions.digest")
    (mail,) = mails(smtp)
    assert mail["Subject"] == "Daily digest: 23 events"
    assert mail["To"] == "ann@example.org"
    text = mail.get_body(("plain",)).get_content()
    assert "- 23 × A play was shown for the first time" in text
    assert "Play 19" in text
    assert "Play 20" not in text
    assert "… and 3 more." in text
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    run_jobs("subscriptions.digest")
    assert digests.enqueue_digests([digest]) == 1  # as the sweeper may, of one that was sent
    run_jobs("subscriptions.digest")
    assert len(smtp.received) == 1


def test_a_digest_groups_by_kind_with_counts_and_times_of_its_reader(smtp, run_jobs, clock) -> None:
    ann = person("ann")
    Preferences.objects.create(user=ann, time_zone="Asia/Tokyo")
    assign_role(FIRST, ann)
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    noon = at("2026-03-10T12:00")
    for event_type, title, minutes in (
        (Gala, "Faust", 0), (Premiere, "Faust", 1), (Premiere, "Hamlet", 2), (Premiere, "Faust", 3),
    ):  # fmt: skip
        when = noon + timedelta(minutes=minutes)
        publish_event(event_type, payload={"title": title}, occurred_at=when)
    run_jobs("subscriptions.notify", "subscriptions.mail")
    clock.step(3600)
    run_jobs("subscriptions.digest")
    (mail,) = mails(smtp)
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
    kind = "A play was shown for the first time"
    assert text.index(f"- 3 × {kind}") < text.index("- 1 × A premiere with guests")
    assert f"* {kind}: Faust\n    2 times: Tue 10 Mar, 21:01; Tue 10 Mar, 21:03" in text
    assert f"* {kind}: Hamlet\n    Tue 10 Mar, 21:02" in text
    assert "Times are in the time zone Asia/Tokyo" in text
    assert "/me/why/" in text
    assert "2 times" in mail.get_body(("html",)).get_content()


def test_what_comes_in_while_a_digest_is_sent_goes_to_the_next(smtp, run_jobs, clock) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("stage.premiere", FIRST, "mail", user=ann, pace="hourly")
    publish_event(payload={"title": "in time"})
    run_jobs("subscriptions.notify")
    (digest,) = Digest.objects.all()
    last = digest.items.get().pk
    late = publish_event(payload={"title": "late"})
    run_jobs("subscriptions.notify")
    clock.step(3600)
    assert digests.mark_sent(digest, last) == 1
    (item,) = DigestItem.objects.filter(event_id=late.id)
    assert item.digest.window_end > digest.window_end
    run_jobs("subscriptions.digest")
    assert smtp.received == []
    clock.step(3600)
    run_jobs("subscriptions.digest")
    assert [mail["Subject"] for mail in mails(smtp)] == ["Hourly digest: 1 event"]


def test_more_than_twenty_mails_in_ten_minutes_become_a_digest(smtp, run_jobs, clock) -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann)
    for _ in range(25):
        publish_event()
    run_jobs("subscriptions.notify")
    assign_role(FIRST, bob)
    publish_event()
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert sum(mail["To"] == "ann@example.org" for mail in mails(smtp)) == 20
    assert sum(mail["To"] == "bob@example.org" for mail in mails(smtp)) == 1
    assert DigestItem.objects.filter(digest__user=ann).count() == 5
    clock.step(601)
    assign_role(FIRST, ann)
    publish_event()
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert sum(mail["To"] == "ann@example.org" for mail in mails(smtp)) == 21
    clock.step(3600)
    run_jobs("subscriptions.digest")
    assert mails(smtp)[-1]["Subject"] == "Hourly digest: 5 events"


def test_notify_that_runs_twice_neither_counts_nor_keeps_twice(run_jobs) -> None:
    from tailrace.subscriptions.notifications.audience.resolve import audiences
    from tailrace.subscriptions.notifications.notify.notifications import notify_recipients

    ann = person("ann")
    assign_role(FIRST, ann)
    events = [publish_event() for _ in range(22)]
    for _ in range(3):
        for event in events:
            notify_recipients(audiences([event]))
    mailed = set(
        Job.objects.filter(handler="subscriptions.mail").values_list("event_id", flat=True)
    )
    kept = set(DigestItem.objects.values_list("event_id", flat=True))
    assert len(mailed) == 20
    assert mailed | kept == {event.id for event in events}
    assert not mailed & kept


def test_a_digest_tells_nothing_to_whom_it_may_not(smtp, run_jobs, clock) -> None:
    ann, crew = person("ann"), Group.objects.create(name="crew")
    GroupAddress.objects.create(group=crew, email="crew@example.org")
    assign_role(FIRST, ann, groups=(crew,))
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    subscribe("*", FIRST, "mail", group=crew, pace="hourly")
    publish_event(payload={"title": "open"})
    publish_event(payload={"title": "secret"})
    run_jobs("subscriptions.notify")
    readers["secret"] = Readers.of(["ann"])
    clock.step(3600)
    run_jobs("subscriptions.digest")
    subjects = {mail["To"]: mail["Subject"] for mail in mails(smtp)}
    assert subjects == {
        "ann@example.org": "Hourly digest: 2 events",
        "crew@example.org": "Hourly digest: 1 event",
    }
    publish_event(Premiere, payload={"title": "another"})
    run_jobs("subscriptions.notify")
    ann.is_active = False
    ann.save()
    clock.step(3600)
    run_jobs("subscriptions.digest")
    assert [mail["To"] for mail in mails(smtp)[2:]] == ["crew@example.org"]
    assert not Digest.objects.filter(sent_at=None, window_end__lt=datetime.now(UTC)).exists()


@pytest.mark.parametrize(
    ("decided", "events"), [(None, 2), (Readers.of(["bob"]), 1), (UNDECIDED, 1)]
)
def test_a_digest_waits_until_it_is_known_who_may_read_its_events(
    smtp, run_jobs, clock, monkeypatch, decided: Readers | None, events: int
) -> None:
    clock.stop()
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    publish_event(payload={"title": "open"})
    publish_event(payload={"title": "unknown"})
    run_jobs("subscriptions.notify")
    monkeypatch.setitem(readers, "unknown", UNDECIDED)
    clock.step(3600)
    run_jobs("subscriptions.digest")
    assert smtp.received == []
    if decided is None:
        del readers["unknown"]
    else:
        readers["unknown"] = decided
    clock.step(3601 if decided is UNDECIDED else 600)
    run_jobs("subscriptions.digest")
    (mail,) = mails(smtp)
    assert mail["Subject"] == f"Hourly digest: {events} event" + "s" * (events > 1)
