"""Unsubscribing: one click, and no scanner does it by accident (RFC 8058)."""

import html
import re
from urllib.parse import urlsplit

import pytest
from django.test import Client

from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.preferences.mute import mute, unmute
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe

PREMIERES = "“A play was shown for the first time” as stage owner"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def strict() -> Client:
    """A browser whose forms have to carry a token, as those of strangers do not."""
    return Client(enforce_csrf_checks=True)


def link_in(smtp) -> str:
    mail = smtp.received[-1].message
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    address = mail["List-Unsubscribe"].strip()
    assert address.startswith("<http")
    assert address.strip("<>") in mail.get_body(("plain",)).get_content()
    return urlsplit(address.strip("<>")).path


def test_a_scanner_changes_nothing_and_one_post_does(smtp, run_jobs, strict: Client) -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann)
    publish_event()
    run_jobs()
    path = link_in(smtp)
    for method in (strict.get, strict.head):
        assert method(path).status_code == 200
    assert not EventSubscription.objects.filter(user=ann).exists()
    assert "Unsubscribe?" in strict.get(path).text
    for _ in range(2):
        answer = strict.post(path, {"List-Unsubscribe": "One-Click"})
        assert answer.status_code == 200
        assert f"ann will no longer get mails about {PREMIERES}" in answer.text
    (row,) = EventSubscription.objects.filter(user=ann)
    assert (row.event_type, row.role, row.channel, row.state) == (
        "stage.premiere", FIRST, "mail", "off",
    )  # fmt: skip
    assign_role(FIRST, ann, bob)
    publish_event()
    run_jobs()
    assert smtp.addressed() == ["ann@example.org", "bob@example.org"]


def test_a_link_of_a_digest_is_for_what_it_told_of(smtp, run_jobs, strict, clock) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("*", FIRST, "mail", user=ann, pace="hourly")
    publish_event()
    run_jobs()
    clock.step(3600)
    run_jobs()
    assert PREMIERES in strict.post(link_in(smtp)).text
    publish_event()
    run_jobs()
    clock.step(3600)
    run_jobs()
    assert len(smtp.received) == 1


@pytest.mark.parametrize("token", ["x", "WzFd:1abc:xyz", "WzEsMl0"])
def test_a_link_that_was_not_made_here_opens_nothing(client: Client, token: str) -> None:
    for method in (client.get, client.post):
        answer = method(f"/unsubscribe/{token}")
        assert answer.status_code == 404
        assert "This link is invalid or expired" in answer.text


def test_a_link_of_somebody_who_left_opens_nothing(smtp, run_jobs, strict: Client) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    publish_event()
    run_jobs()
    path = link_in(smtp)
    ann.delete()
    assert strict.post(path).status_code == 404


def test_it_is_undone_by_a_button_and_only_what_it_changed(smtp, run_jobs, strict: Client) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    mine = subscribe("stage.premiere", FIRST, "mail", user=ann, subject_pattern="devel:*")
    publish_event(payload={"title": "devel:faust"})
    run_jobs()
    path = link_in(smtp)

    def undo(answer) -> str:
        return html.unescape(re.search(r'name="undo" value="([^"]+)"', answer.text)[1])

    text = undo(strict.post(path))
    again = strict.post(path)
    assert "Unsubscribed" in again.text
    assert "Undo" not in again.text, "it was off before"
    assert "Subscribed again" in strict.post(path, {"undo": text}).text
    mine.refresh_from_db()
    assert (mine.state, mine.subject_pattern) == ("on", "devel:*")
    assert "can no longer be undone" in strict.post(path, {"undo": text[:-2]}).text

    mine.delete()
    text = undo(strict.post(path))
    strict.post(path, {"undo": text})
    assert not EventSubscription.objects.filter(user=ann).exists(), "the default counts again"


def test_an_undo_is_of_its_user_alone() -> None:
    ann, bob = person("ann"), person("bob")
    text = mute(ann, "mail", [("stage.premiere", FIRST)])
    assert not unmute(bob, text)
    assert EventSubscription.objects.get(user=ann).state == "off"
    EventSubscription.objects.filter(user=ann).update(state="on", pace="daily")
    assert unmute(ann, text)
    assert EventSubscription.objects.get(user=ann).pace == "daily", "what was changed since stays"
