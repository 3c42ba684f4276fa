"""The admin of subscriptions."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Block, EventSubscription, Feed, GroupAddress, Notification
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize(
    "model",
    [EventSubscription, Block, GroupAddress, Feed, Notification],
    ids=lambda one: one.__name__,
)
def test_each_list_needs_a_permission(operator: Client, model: type) -> None:
    path = f"/admin/tailrace_subscriptions/{model.__name__.lower()}/"
    assert operator.get(path).status_code == 200
    operator.force_login(User.objects.create_user("clerk", is_staff=True))
    assert operator.get(path).status_code == 403


def test_an_unknown_type_or_role_gets_a_suggestion(operator: Client) -> None:
    answer = operator.post(
        "/admin/tailrace_subscriptions/eventsubscription/add/",
        {
            "event_type": "stage.premier",
            "role": "stage_ower",
            "channel": "mail",
            "state": "on",
            "pace": "instant",
        },
    )
    errors = answer.context["adminform"].form.errors
    assert "did you mean 'stage.premiere'" in errors["event_type"][0]
    assert "did you mean 'stage_owner'" in errors["role"][0]


def test_a_second_row_for_the_same_receiver_is_refused(operator: Client) -> None:
    values = {"event_type": "*", "role": FIRST, "channel": "mail", "state": "on", "pace": "instant"}
    path = "/admin/tailrace_subscriptions/eventsubscription/add/"
    assert operator.post(path, values).status_code == 302
    assert operator.post(path, values).status_code == 200
    assert EventSubscription.objects.filter(event_type="*").count() == 1


def test_a_feed_is_revoked_and_its_token_never_shown(operator: Client) -> None:
    feed, address = make_feed(person("ann"))
    path = "/admin/tailrace_subscriptions/feed/"
    for page in (operator.get(path), operator.get(f"{path}{feed.pk}/change/")):
        assert feed.token_hash not in page.content.decode()
        assert address not in page.content.decode()
    operator.post(path, {"action": "revoke", "_selected_action": [feed.pk]})
    feed.refresh_from_db()
    assert feed.revoked_at is not None


def test_notifications_are_searched_by_event_and_read_only(operator: Client) -> None:
    notification = Notification.objects.create(
        event_id=publish_event().id, user=person("ann"), role=FIRST
    )
    answer = operator.get(
        "/admin/tailrace_subscriptions/notification/", {"q": notification.event_id}
    )
    assert list(answer.context["cl"].result_list) == [notification]
    assert operator.get("/admin/tailrace_subscriptions/notification/add/").status_code == 403


def test_an_events_page_shows_who_was_notified_and_why(run_jobs, admin_client: Client) -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann)
    event = publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.web")
    page = f"/admin/tailrace_events/event/{event.id}/change/"
    text = admin_client.get(page).text
    assert "Who was notified" in text
    assert ">ann<" in text
    assert "stage owner" in text
    assert 'web</a> <span class="tr-state tr-completed">completed' in text
    text = admin_client.get(page, {"who": "bob"}).text
    assert "bob has none of the roles: stage owner, stage watcher" in text
    assert "There is no user carl" in admin_client.get(page, {"who": "carl"}).text
    assert "default: on for stage.premiere (as stage owner)" in (
        admin_client.get(page, {"who": "ann"}).text
    )
    assert "&lt;script" in admin_client.get(page, {"who": "<script>"}).text
    assert bob.is_active
