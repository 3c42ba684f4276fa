"""Why did I get this: the reason for each channel, and the button that ends it."""

import re

import pytest
from django.contrib.auth.models import User

from tailrace.events.readers import UNDECIDED, Readers
from tailrace.subscriptions.models import EventSubscription, InboxItem
from tests.subscriptions.sample_domain import (
    FIRST,
    assign_role,
    person,
    publish_event,
    readers,
    subscribe,
)
from tests.web.program import Program, allow
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> Visitor:
    user = person("ann")
    assign_role(FIRST, user)
    return Visitor(user)


def test_inbox_and_mail_lead_to_the_reason_and_one_click_ends_it(
    ann: Visitor, run_jobs, smtp
) -> None:
    event = publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.web", "subscriptions.mail")
    path = f"/me/why/{event.id}"
    assert path in ann.get("/me/inbox").content.decode()
    for kind in ("plain", "html"):
        assert path in smtp.received[0].message.get_body((kind,)).get_content()
    page = ann.get(path)
    assert "A play was shown for the first time: Faust" in words(page)
    now = r"web sent .+ Your settings now: default: on for [^(]+\(as stage owner\)"
    assert re.search(now, words(page))
    assert "You were notified as stage owner." in words(page)
    assert "type=stage.premiere&amp;role=stage_owner&amp;channel=web" in page.content.decode()

    answer = ann.post(f"{path}/mute", {"role": FIRST, "channel": "web"})
    page = ann.get(answer["Location"])
    what = "“A play was shown for the first time” by web, as stage owner"
    assert f"You will no longer be notified about {what}." in words(page)
    assert "web not sent" not in words(page), "the inbox has it"
    assert "Your settings now: own subscription: off for stage.premiere" in words(page)
    assert EventSubscription.objects.get(user=ann.user).channel == "web"
    undo = re.search(r'name="undo" value="([^"]+)"', page.content.decode())
    assert undo
    ann.post(f"{path}/mute", {"undo": undo[1]})
    assert "The previous setting was restored." in ann.text(path)
    assert not EventSubscription.objects.filter(user=ann.user).exists()
    assert InboxItem.objects.filter(user=ann.user).count() == 1


def test_what_is_no_option_is_not_switched_off(ann: Visitor, run_jobs) -> None:
    event = publish_event()
    run_jobs("subscriptions.notify")
    path = f"/me/why/{event.id}/mute"
    for values in ({}, {"role": FIRST, "channel": "pigeon"}, {"role": "boss", "channel": "web"}):
        assert ann.post(path, values).status_code == 404
    assert not EventSubscription.objects.filter(user=ann.user).exists()
    ann.post(path, {"undo": "x"})
    assert "can no longer be undone" in ann.text(f"/me/why/{event.id}")


def states(ann: Visitor, id: int) -> dict[str, str]:
    """Return by channel what the page says about what was sent."""
    found = re.findall(
        r"<li><div><strong>(\w+)</strong> <span class=\"tr-state [\w-]+\">([\w ]+)</span>",
        ann.get(f"/me/why/{id}").content.decode(),
    )
    return dict(found)


def test_a_mail_that_was_sent_stays_sent_after_unsubscribing(ann: Visitor, run_jobs, smtp) -> None:
    event = publish_event()
    run_jobs("subscriptions.notify")
    unsent = dict.fromkeys(("rss", "push", "sms", "webhook"), "not sent")
    assert states(ann, event.id) == unsent | {"mail": "waiting", "web": "waiting"}
    run_jobs("subscriptions.mail", "subscriptions.web")
    text = smtp.received[0].message.get_body(("plain",)).get_content()
    link = re.search(r"Unsubscribe: \S+(/unsubscribe/\S+)", text)
    assert link
    ann.post(link[1], {})
    assert EventSubscription.objects.get(user=ann.user).state == "off"
    assert states(ann, event.id)["mail"] == states(ann, event.id)["web"] == "sent"
    later = publish_event()
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert states(ann, later.id)["mail"] == "not sent"


def test_what_was_in_a_digest_and_what_was_skipped_is_said(ann: Visitor, run_jobs, clock) -> None:
    subscribe("stage.premiere", FIRST, "mail", user=ann.user, pace="hourly")
    event = publish_event()
    run_jobs("subscriptions.notify")
    text = ann.text(f"/me/why/{event.id}")
    assert "mail waiting in the hourly digest" in text
    EventSubscription.objects.filter(user=ann.user).delete()
    clock.step(3700)
    run_jobs("subscriptions.digest")
    assert "mail sent in the hourly digest" in ann.text(f"/me/why/{event.id}")
    other = publish_event()
    run_jobs("subscriptions.notify")
    User.objects.filter(pk=ann.user.pk).update(is_active=False)
    run_jobs("subscriptions.web")
    User.objects.filter(pk=ann.user.pk).update(is_active=True)
    found = ann.text(f"/me/why/{other.id}")
    assert "web not sent the recipient is no longer active" in found


def test_the_page_does_not_come_and_go_with_what_is_known_of_the_readers(
    ann: Visitor, run_jobs, smtp
) -> None:
    """While they are unknown, the page shows what was sent, and nothing of the event."""
    event = publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.mail")
    path = f"/me/why/{event.id}"
    readers["Faust"] = UNDECIDED
    page = ann.get(path)
    assert page.status_code == 200
    assert "Faust" not in page.content.decode()
    assert "We are still checking who may read this event" in words(page)
    assert states(ann, event.id)["mail"] == "sent"
    assert ann.post(f"{path}/mute", {"role": FIRST, "channel": "web"}).status_code == 302
    readers["Faust"] = Readers.of(["bob"])
    assert ann.get(path).status_code == 404
    readers.clear()
    assert "Faust" in ann.text(path)
    assert Visitor(person("eve")).get(path).status_code == 404


def test_the_api_says_what_was_recorded(ann: Visitor, run_jobs, smtp) -> None:
    event = publish_event()
    run_jobs("subscriptions.notify", "subscriptions.mail")
    subscribe("stage.premiere", FIRST, "mail", user=ann.user, state="off")
    allow(ann.user, "tailrace_events.view_event")
    answer = Program(ann.user, "events:read").get(f"/events/{event.id}").json()
    [mail] = [each for each in answer["explained"] if each["channel"] == "mail"]
    assert (mail["sent"], mail["notified"]) == ("sent", False)
