"""The admin of subscriptions."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from subscriptions.feeds import make_feed
from subscriptions.models import Block, EventSubscription, Feed, GroupAddress, Notification
from tests.subscriptions.stage import FIRST, happen, hold, person

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
def test_each_list_opens_and_a_stranger_sees_none(operator: Client, model: type) -> None:
    path = f"/admin/subscriptions/{model.__name__.lower()}/"
    assert operator.get(path).status_code == 200
    operator.force_login(User.objects.create_user("clerk", is_staff=True))
    assert operator.get(path).status_code == 403


def test_a_row_with_an_unknown_type_or_role_is_refused_with_a_suggestion(operator: Client) -> None:
    answer = operator.post(
        "/admin/subscriptions/eventsubscription/add/",
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
    path = "/admin/subscriptions/eventsubscription/add/"
    assert operator.post(path, values).status_code == 302
    assert operator.post(path, values).status_code == 200
    assert EventSubscription.objects.filter(event_type="*").count() == 1


def test_a_feed_is_revoked_and_its_token_never_shown(operator: Client) -> None:
    feed, address = make_feed(person("ann"))
    path = "/admin/subscriptions/feed/"
    for page in (operator.get(path), operator.get(f"{path}{feed.pk}/change/")):
        assert feed.token_hash not in page.content.decode()
        assert address not in page.content.decode()
    operator.post(path, {"action": "revoke", "_selected_action": [feed.pk]})
    feed.refresh_from_db()
    assert feed.revoked_at is not None


def test_notifications_are_found_by_event_and_changed_by_nobody(operator: Client) -> None:
    one = Notification.objects.create(event_id=happen().id, user=person("ann"), role=FIRST)
    found = operator.get("/admin/subscriptions/notification/", {"q": one.event_id})
    assert list(found.context["cl"].result_list) == [one]
    assert operator.get("/admin/subscriptions/notification/add/").status_code == 403


def test_an_events_page_tells_who_heard_and_why_somebody_did_not(
    run_jobs, admin_client: Client
) -> None:
    ann, bob = person("ann"), person("bob")
    hold(FIRST, ann)
    event = happen(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.web")
    page = f"/admin/events/event/{event.id}/change/"
    text = admin_client.get(page).text
    assert "Who heard of it" in text
    assert ">ann<" in text
    assert "stage owner" in text
    assert 'web</a> <span class="tr-state tr-completed">completed' in text
    text = admin_client.get(page, {"who": "bob"}).text
    assert "bob is none of these: stage owner, stage watcher" in text
    assert "No user is called carl" in admin_client.get(page, {"who": "carl"}).text
    assert "default: on for stage.premiere (as stage owner)" in (
        admin_client.get(page, {"who": "ann"}).text
    )
    assert "&lt;script" in admin_client.get(page, {"who": "<script>"}).text
    assert bob.is_active
