"""Explanations under attack: those of others, of what is hidden since, and an endpoint's messages
after its owner lost the right to read."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group

from tailrace.events.readers import Readers
from tailrace.subscriptions.channels.webhook.history import messages
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import EventSubscription
from tests.servers.web import serving
from tests.subscriptions.channels.webhook.kit import BOTH, owner
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, readers
from tests.web.program import Program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _local(settings) -> Iterator[None]:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    yield
    readers.clear()


def test_only_who_was_notified_and_may_still_read_gets_an_explanation(run_jobs) -> None:
    ann, bob, carol = person("ann"), person("bob"), person("carol")
    crew = Group.objects.create(name="crew")
    carol.groups.add(crew)
    assign_role(FIRST, ann, groups=(crew,))
    event = publish_event(payload={"title": "Faust"})
    path = f"/me/why/{event.id}"
    assert Visitor(ann).get(path).status_code == 404, "nobody was notified yet"
    run_jobs("subscriptions.notify")
    assert Visitor(ann).get(path).status_code == 200
    assert Visitor(carol).get(path).status_code == 200, "through the group"
    for visitor in (Visitor(bob), Visitor(None)):
        answers = visitor.get(path), visitor.post(f"{path}/mute", {"role": FIRST, "channel": "web"})
        assert [each.status_code for each in answers] == [404, 404] if visitor.user else [302, 302]
        assert "Faust" not in "".join(each.content.decode() for each in answers)
    readers["Faust"] = Readers.of(["ann"])
    assert Visitor(ann).get(path).status_code == 200
    assert Visitor(carol).get(path).status_code == 404, "hidden since"
    assert Visitor(ann).get("/me/why/9223372036854775807").status_code == 404
    assert not EventSubscription.objects.filter(user__isnull=False).exists()


def test_the_message_of_an_event_that_is_hidden_since_says_nothing_of_it(run_jobs) -> None:
    with serving() as server:
        ann, endpoint, _ = owner(server.url)
        publish_event(payload={"title": "devel:secret"})
        run_jobs(*BOTH)
    (message,) = messages.describe(endpoint, list(messages.of_endpoint(endpoint)))
    readers["devel:secret"] = Readers.of(["somebody"])
    page = Visitor(ann).get(f"/me/endpoints/{endpoint.pk}/messages/{message.id}")
    listed = Visitor(ann).get(f"/me/endpoints/{endpoint.pk}")
    program = Program(ann, "endpoints")
    details = program.get(f"/endpoints/{endpoint.pk}/messages/{message.id}")
    for answer in (page, listed, details):
        assert answer.status_code == 200
        assert "secret" not in answer.content.decode().replace("New secret", "")
    again = program.post(f"/endpoints/{endpoint.pk}/messages/{message.id}/resend")
    assert again.status_code == 409


def test_another_users_messages_and_recoveries_are_not_found() -> None:
    ann, bob = person("ann"), person("bob")
    theirs, _ = endpoints.create(ann, "https://example.org/")
    mine, _ = endpoints.create(bob, "https://example.org/")
    sent = endpoints.send_test(theirs)
    program = Program(bob, "endpoints")
    recovery = {"what": "failed", "since": "2026-11-23T00:00:00Z"}
    for id in (theirs.pk, mine.pk):
        assert program.get(f"/endpoints/{id}/messages/{sent}").status_code == 404
        assert program.post(f"/endpoints/{id}/messages/{sent}/resend").status_code == 404
        assert program.get(f"/endpoints/{id}/recoveries/{sent}").status_code == 404
    assert program.get(f"/endpoints/{theirs.pk}/messages").status_code == 404
    assert program.post(f"/endpoints/{theirs.pk}/recover", recovery).status_code == 404
