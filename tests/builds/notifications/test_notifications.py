"""From a build-service event to mails and feeds."""

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from tailrace.config.devserver.embedded import Selection
from tailrace.domains.builds.event_types.build import BuildFail
from tailrace.domains.builds.event_types.comment import CommentForPackage
from tailrace.domains.builds.event_types.request import RequestStatechange
from tailrace.domains.builds.models import RoleHolder
from tailrace.events.publish import NewEvent, publish
from tailrace.samples.builds.seed import seed_builds
from tailrace.samples.processes import PROCESSES, accounts
from tailrace.subscriptions.models import EventSubscription, Feed
from tailrace.subscriptions.notifications.rendering.event_text import render_event

pytestmark = pytest.mark.django_db(transaction=True)

FAILED = {"project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64"}


def test_seed_builds_is_repeatable_and_its_people_cannot_log_in() -> None:
    assert "/feeds/me/" in seed_builds()
    assert seed_builds() == ""
    assert Feed.objects.count() == 1
    assert not User.objects.get(username="alice").has_usable_password()


def test_the_users_of_an_embedded_database_have_the_password_that_is_printed(
    settings, tmp_path
) -> None:
    settings.VAR_DIR, settings.EMBEDDED = tmp_path, Selection(postgres=True, valkey=True)
    [backend] = [process for process in PROCESSES if process.name == "backend"]
    backend.prepare()
    [line] = accounts().values()
    names, _, password = line.partition(", password ")
    for name in names.split(", "):
        assert authenticate(username=name, password=password)
    assert (tmp_path / "sample_password").stat().st_mode & 0o077 == 0
    alice = User.objects.get(username="alice")
    alice.set_password("other")
    alice.save()
    assert accounts() == {}, "a password that does not fit is not printed"


def test_a_failed_build_is_mailed_to_maintainers_and_watchers(run_jobs, mailoutbox) -> None:
    seed_builds()
    run_jobs("subscriptions.notify", "subscriptions.mail")
    mailoutbox.clear()  # about the feed of the demo
    RoleHolder.objects.create(backend="", project="home:alice", role="maintainer", user="alice")
    RoleHolder.objects.create(backend="", project="home:alice", role="reader", user="bob")
    publish(NewEvent(BuildFail, FAILED | {"reason": "source change"}))
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert sorted(mail.to[0] for mail in mailoutbox) == ["alice@example.org", "carol@example.org"]
    assert mailoutbox[0].subject == "Build of home:alice/hello failed in standard/x86_64"
    assert "Built because of: source change" in mailoutbox[0].body


def test_by_default_readers_are_not_notified() -> None:
    rows = EventSubscription.objects.filter(event_type="builds.build_fail", user=None, group=None)
    states = dict(rows.filter(channel="mail").values_list("role", "state"))
    assert states["maintainer"] == states["package_watcher"] == "on"
    assert states["reader"] == "off"


@pytest.mark.parametrize(
    ("event_type", "payload", "title", "words"),
    [
        (BuildFail, FAILED, "Build of home:alice/hello failed", "standard/x86_64"),
        (
            RequestStatechange,
            {
                "number": 7,
                "author": "bob",
                "oldstate": "new",
                "state": "accepted",
                "actions": [
                    {"type": "submit", "sourceproject": "a", "targetproject": "b"},
                ],
            },
            "Request 7: accepted",
            "new -> accepted",
        ),
        (
            CommentForPackage,
            {"id": 1, "project": "p", "package": "q", "commenter": "bob", "comment_body": "a < b"},
            "bob commented on p/q",
            "a < b",
        ),
    ],
)
def test_events_have_texts_of_their_own(event_type, payload, title, words) -> None:
    (event,) = publish(NewEvent(event_type, payload))
    text = render_event(event)
    assert text.title.startswith(title)
    assert words in text.text
    assert words.replace("<", "&lt;").replace("->", "-&gt;") in text.html
