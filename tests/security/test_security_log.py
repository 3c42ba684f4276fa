"""What an attacker does to accounts and keys is seen: it is an event, and a line in the log."""

import json

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.test import Client

from tailrace.db.query import query
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.subscriptions.channels.rss.feeds import make_feed, revoke_feed
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.web.accounts import tokens
from tailrace.web.accounts.security.log import ENTRIES_PER_WINDOW
from tailrace.web.event_types import SecurityEvent
from tests.subscriptions.sample_domain import person
from tests.web.program import allow, program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


def entries(*names: str) -> list[Event]:
    """Return the entries of the log, the oldest first; of these types, if any are given."""
    events = Event.objects.filter(type__startswith="security.").order_by("id")
    return list(events.filter(type__in=[f"security.{name}" for name in names]) if names else events)


def types() -> list[str]:
    return [event.type.removeprefix("security.") for event in entries()]


@pytest.fixture
def root() -> Client:
    client = Client(REMOTE_ADDR="203.0.113.7")
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_a_thief_of_a_session_makes_a_token_and_the_owner_is_told() -> None:
    ann = Visitor(person("ann"))
    form = {"name": "ci", "scopes": ["feeds"], "days": "30"}
    answer = ann.post("/me/preferences/tokens", form, REMOTE_ADDR="203.0.113.9")
    [event] = entries("token_made")
    assert event.actor == "ann"
    assert event.subject == f"account/{ann.user.pk}"
    assert event.payload["address"] == "203.0.113.9"
    assert event.payload["scopes"] == ["feeds"]
    token = ann.user.api_tokens.get()
    assert event.payload["token"] == token.pk
    text = answer.content.decode().partition("tr_")[2][:20]
    assert text not in json.dumps(event.payload)
    assert token.token_hash not in json.dumps(event.payload)
    ann.post(f"/me/preferences/tokens/{token.pk}/revoke")
    tokens.revoke(token)
    assert types() == ["token_made", "token_revoked"], "a second revocation changes nothing"


def test_a_stolen_token_is_tried_on_what_it_may_not_do_and_cannot_fill_the_log() -> None:
    bob = program("bob", "feeds")
    for _ in range(ENTRIES_PER_WINDOW + 5):
        assert bob.get("/endpoints").status_code == 403
    refused = entries("scope_refused")
    assert len(refused) == ENTRIES_PER_WINDOW
    assert refused[0].payload["scope"] == "endpoints"
    assert refused[0].payload["token"] == bob.token.pk
    assert (refused[0].actor, refused[0].subject) == ("bob", f"account/{bob.user.pk}")


def test_a_thief_redirects_webhooks_and_the_new_host_is_seen_but_no_secret(settings) -> None:
    ann = person("ann")
    endpoint, secret = endpoints.create(ann, "https://example.org/hook?key=hush")
    endpoints.change(endpoint, url="https://evil.example/hush")
    new_secret = endpoints.rotate(endpoint)
    endpoints.pause(endpoint)
    endpoints.delete(endpoint)
    made, changed, rotated, paused, deleted = entries()
    assert [event.payload["host"] for event in (made, changed)] == ["example.org", "evil.example"]
    assert rotated.type == "security.secret_rotated"
    assert [event.payload["change"] for event in (made, changed, paused, deleted)] == [
        "created",
        "changed",
        "paused",
        "deleted",
    ]
    written = json.dumps([event.payload for event in entries()])
    for hidden in ("hush", secret, new_secret):
        assert hidden not in written


def test_feeds_that_leak_events_are_made_and_revoked() -> None:
    feed, address = make_feed(person("ann"), "mine")
    revoke_feed(feed)
    revoke_feed(feed)
    assert types() == ["feed_made", "feed_revoked"]
    token = address.rpartition("/")[2].removesuffix(".atom")
    assert token not in json.dumps([event.payload for event in entries()])


def test_staff_raise_their_rights_in_the_admin(root: Client) -> None:
    eve = User.objects.create_user("eve", password="a long password", is_staff=True)
    operators = Group.objects.create(name="operators")
    replay = Permission.objects.get(codename="replay_job")
    page = f"/admin/auth/user/{eve.pk}/change/"
    form = {
        "username": "eve",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "groups": [operators.pk],
        "user_permissions": [replay.pk],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "12:00",
    }
    assert root.post(page, form).status_code == 302
    assert root.post(page, {**form, "groups": [], "is_superuser": ""}).status_code == 302
    assert {event.actor for event in entries()} == {"root"}
    assert {event.payload["address"] for event in entries()} == {"203.0.113.7"}
    assert [event.payload["changes"] for event in entries("account_changed")] == [
        ["is_superuser: yes"],
        ["is_superuser: no"],
    ]
    added = [event.payload["added"] for event in entries("permissions_changed")]
    removed = [event.payload["removed"] for event in entries("permissions_changed")]
    assert sorted(filter(None, added)) == [["group:operators"], ["tailrace_jobs.replay_job"]]
    assert list(filter(None, removed)) == [["group:operators"]]


def test_staff_give_a_group_rights_from_either_side_and_take_them(root: Client) -> None:
    group = Group.objects.create(name="crew")
    replay = Permission.objects.get(codename="replay_job")
    page = f"/admin/auth/group/{group.pk}/change/"
    root.post(page, {"name": "crew", "permissions": [replay.pk]})
    root.post(page, {"name": "crew", "permissions": []})
    root.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    given, taken, deleted = entries()
    assert given.subject == "group/crew"
    assert given.payload["added"] == ["tailrace_jobs.replay_job"]
    assert taken.payload["removed"] == ["tailrace_jobs.replay_job"]
    assert deleted.payload["removed"] == ["the group itself"]


def test_accounts_made_and_deleted_in_the_admin_are_in_the_log(root: Client) -> None:
    passwords = {"password1": "a long password", "password2": "a long password"}
    form = {"username": "new", "usable_password": "true", **passwords}
    root.post("/admin/auth/user/add/", form)
    new = User.objects.get(username="new")
    root.post(f"/admin/auth/user/{new.pk}/delete/", {"post": "yes"})
    changes = [event.payload["changes"] for event in entries("account_changed")]
    assert changes == [["created"], ["is_active: no"]], "a job deletes it later"


def test_a_password_set_by_another_is_in_the_log_and_the_same_one_hashed_again_is_not() -> None:
    ann = User.objects.create_user("ann", password="a long password")
    ann.set_password("another password")
    ann.save()
    ann.set_unusable_password()
    ann.save()
    assert types() == ["password_changed", "password_changed"]
    ann.last_name = "Lee"
    ann.save()
    ann.is_active = False
    ann.save(update_fields=["is_active"])
    assert types()[2:] == ["account_changed"]
    written = json.dumps([event.payload for event in entries()])
    assert "password" not in written
    bob = User(username="bob")
    bob.set_password("a long password")
    bob.password = bob.password.replace(bob.password.split("$")[1], "1000", 1)
    bob.save()
    bob.check_password("wrong")
    bob.password = bob.password  # what a login with more rounds does: save without `_password`
    bob._password = None
    bob.save(update_fields=["password"])
    assert len(entries()) == 3


def test_an_act_that_is_rolled_back_leaves_no_entry() -> None:
    with transaction.atomic():
        make_feed(person("ann"))
        assert types() == ["feed_made"]
        transaction.set_rollback(True)
    assert entries() == []


def test_a_token_made_by_a_command_is_in_the_log(capsys) -> None:
    person("ann")
    call_subcommand("make_token", "ann", name="ci", scopes="feeds")
    [event] = entries("token_made")
    assert (event.actor, event.payload["address"]) == ("", "")


def test_each_entry_is_a_line_of_the_log_too(django_capture_on_commit_callbacks, caplog) -> None:
    ann = person("ann")
    with caplog.at_level("INFO"), django_capture_on_commit_callbacks(execute=True):
        make_feed(ann)
    logged = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    [line] = [entry for entry in logged if entry["event"].startswith("security.")]
    assert (line["event"], line["user"]) == ("security.feed_made", "ann")


def test_others_do_not_read_the_log_even_with_all_permissions_of_events() -> None:
    ann, eve, officer = person("ann"), person("eve"), person("officer")
    make_feed(ann)
    allow(eve, "tailrace_events.view_event", "tailrace_events.view_payload")
    allow(officer, "tailrace_web.view_security_log")
    [event] = entries()
    recorded = Recorded.from_model(event)
    readers = [user.username for user in (ann, eve, officer) if may_read(user, [recorded])]
    assert readers == ["ann", "officer"]


def test_a_new_user_with_the_name_of_a_deleted_one_reads_nothing_of_theirs() -> None:
    ann = person("ann")
    make_feed(ann)
    ann.delete()
    [event] = entries()
    assert may_read(person("ann"), [Recorded.from_model(event)]) == set()


def test_the_log_cannot_be_forged_over_the_api() -> None:
    assert not any(cls.api_records for cls in SecurityEvent.__subclasses__())


def test_who_reads_the_log_can_subscribe_to_it_and_the_holder_is_told_by_default() -> None:
    rows = query(
        "SELECT event_type, state FROM tailrace_subscriptions_eventsubscription"
        " WHERE role = 'account_holder' AND channel = 'mail' AND user_id IS NULL"
        " AND group_id IS NULL"
    )
    assert ("security.token_made", "on") in rows
    assert ("security.password_changed", "on") in rows
    watched = dict(
        query(
            "SELECT event_type, state FROM tailrace_subscriptions_eventsubscription"
            " WHERE role IN ('account_watcher', 'security') AND channel = 'mail'"
        )
    )
    assert watched["security.login"] == "off"
    assert watched["security.login_failed"] == "off"
