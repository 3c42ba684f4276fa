"""What an endpoint gets, and who gets nothing."""

import pytest
from standardwebhooks import WebhookVerificationError

from tailrace.events.readers import Readers
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.runtime.states import State
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.webhook.channel import Webhook
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Delivery, Endpoint, EventSubscription
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tests.kit import at_once, wait_until
from tests.servers.web import ReceivedRequest, serving
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    job,
    jobs_of,
    owner,
    verify,
)
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, readers

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_endpoint_gets_the_event_signed(run_jobs) -> None:
    with serving() as server:
        _ann, _endpoint, secret = owner(f"{server.url}/in?token=x")
        event = publish_event(payload={"title": "Faust", "note": "é\u2028"}, actor="goethe")
        run_jobs(*BOTH)
    (request,) = server.requests
    assert request.path == "/in?token=x"
    body = verify(request, secret)
    assert body["type"] == "stage.premiere"
    assert body["timestamp"] == event.occurred_at.isoformat()
    assert body["data"] == {
        "event": event.id,
        "type": "stage.premiere",
        "subject": "Faust",
        "actor": "goethe",
        "occurred_at": event.occurred_at.isoformat(),
        "payload": {"title": "Faust", "note": "é\u2028"},
        "title": "A play was shown for the first time: Faust",
        "link": "",
        "reason": FIRST,
    }
    assert b'", "' not in request.body, "compact"
    assert request.headers["content-type"] == "application/json"
    assert secret.startswith("whsec_")
    assert job().state == State.COMPLETED
    assert job().result == {"status": 200}
    (row,) = Delivery.objects.all()
    assert (row.outcome, row.status, row.attempt, row.error) == ("ok", 200, 1, "")
    assert (row.event_id, row.job_id) == (event.id, job().pk)
    assert row.message_id == request.headers["webhook-id"]


def test_a_changed_body_or_another_secret_does_not_verify(run_jobs) -> None:
    with serving() as server:
        _ann, _endpoint, secret = owner(server.url)
        publish_event(payload={"title": "Faust"})
        run_jobs(*BOTH)
    (request,) = server.requests
    forged = ReceivedRequest(
        request.method, request.path, request.headers, request.body.replace(b"Faust", b"Fausu")
    )
    for tried, key in ((forged, secret), (request, new_secret())):
        with pytest.raises(WebhookVerificationError):
            verify(tried, key)


def test_one_job_and_lane_per_endpoint_by_one_query(run_jobs, django_assert_num_queries) -> None:
    ann, bob = person("ann"), person("bob")
    enabled = [endpoints.create(user, "https://example.org/")[0] for user in (ann, ann, bob)]
    off = endpoints.create(bob, "https://example.org/")[0]
    endpoints.disable(off)
    assign_role(FIRST, ann, bob, person("carol"))
    event = publish_event()
    run_jobs("subscriptions.notify")
    keys = {(row.routing_key, row.lane) for row in jobs_of(event)}
    assert keys == {
        (f"user:{endpoint.user_id}:endpoint:{endpoint.pk}", f"endpoint:{endpoint.pk}")
        for endpoint in enabled
    }
    recipients = [recipient for recipient in audiences([event]) if recipient.channel == "webhook"]
    assert len(recipients) == 2, "carol has no endpoint"
    with django_assert_num_queries(1):
        assert len(list(Webhook.deliveries(recipients))) == 3


def test_it_is_offered_where_the_web_is_and_can_be_switched_off(run_jobs) -> None:
    ann, _endpoint, _secret = owner("https://example.org/")
    EventSubscription.objects.create(
        event_type="stage.premiere", role=FIRST, channel="webhook", user=ann, state="off"
    )
    publish_event()
    run_jobs("subscriptions.notify")
    assert jobs_of() == []


def test_users_who_lost_read_access_get_nothing(run_jobs) -> None:
    with serving() as server:
        owner(server.url)
        publish_event(payload={"title": "secret"})
        run_jobs("subscriptions.notify")
        readers["secret"] = Readers.of(["somebody"])
        run_jobs(WEBHOOK)
    assert server.requests == []
    assert job().state == State.SKIPPED
    assert "may no longer read" in job().error


def test_inactive_users_get_nothing(run_jobs) -> None:
    with serving() as server:
        ann, _endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs("subscriptions.notify")
        ann.is_active = False
        ann.save()
        run_jobs(WEBHOOK)
    assert server.requests == []
    assert job().state == State.SKIPPED
    assert "no longer active" in job().error


def test_a_deleted_or_transferred_endpoint_gets_nothing(run_jobs) -> None:
    with serving() as server:
        ann, endpoint, _secret = owner(server.url)
        other, _ = endpoints.create(ann, server.url)
        publish_event()
        run_jobs("subscriptions.notify")
        Endpoint.objects.filter(pk=endpoint.pk).delete()  # not by the service: its job is left
        Endpoint.objects.filter(pk=other.pk).update(user=person("bob"))
        run_jobs(WEBHOOK)
    assert server.requests == []
    assert {row.state for row in jobs_of()} == {State.CANCELLED}
    assert "deleted" in jobs_of()[0].error


def test_a_job_that_names_no_endpoint_fails(run_jobs) -> None:
    event = publish_event()
    for key in ("", "user:x:endpoint:1", "group:1", "user:1:endpoint"):
        enqueue(WEBHOOK, event_id=event.id, routing_key=key)
    run_jobs(WEBHOOK)
    assert {row.state for row in jobs_of(event)} == {State.FAILED}
    assert "names no recipient" in jobs_of(event)[0].error


def test_deliveries_of_several_workers_are_each_made_once(run_jobs, settings) -> None:
    settings.WEBHOOK_PER_SECOND = 1000
    with serving() as server:
        ann = person("ann")
        assign_role(FIRST, ann)
        for number in range(10):
            endpoints.create(ann, f"{server.url}/{number}")
        for _ in range(12):
            publish_event()
        run_jobs("subscriptions.notify")
        at_once(4, lambda number: drain(WEBHOOK))
        # On a busy machine some were not begun in time, and come back in a second.
        wait_until(
            lambda: run_jobs(WEBHOOK) >= 0 and len(server.requests) >= 120, 20, "all of them"
        )
    ids = [request.headers["webhook-id"] for request in server.requests]
    assert len(ids) == len(set(ids)) == 120
    assert Delivery.objects.filter(outcome="ok").count() == 120
