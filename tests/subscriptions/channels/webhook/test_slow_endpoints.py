"""Endpoints that are slow or away, and the limit of what one gets per second."""

import pytest

from tailrace.db import clock as events_clock
from tailrace.jobs.runtime.states import State
from tailrace.net import http_client
from tailrace.subscriptions.channels.webhook.channel import Webhook
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Endpoint
from tests.servers.raw import hanging
from tests.servers.web import closed_port, serving
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    jobs_of,
    owner,
)
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_endpoint_that_hangs_does_not_delay_the_others(
    run_jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 3.0)
    arrived: list[int] = []
    with hanging(lambda: arrived.append(len(server.requests))) as port, serving() as server:
        ann, dead, _secret = owner(f"http://127.0.0.1:{port}/")
        endpoints.create(ann, server.url)
        for _ in range(20):
            publish_event()
        run_jobs(*BOTH)
    assert arrived[0] == 20, "others were served while it hung"
    assert len({request.headers["webhook-id"] for request in server.requests}) == 20
    waiting = jobs_of(lane=f"endpoint:{dead.pk}")
    assert {row.state for row in waiting} == {State.PENDING}
    assert sum(row.attempt for row in waiting) == Webhook.per_destination
    assert "no answer in 3 s" in dead.deliveries.first().error


def test_a_long_outage_costs_no_attempts(run_jobs, settings, clock) -> None:
    settings.WEBHOOK_PER_SECOND = 100
    ann = person("ann")
    assign_role(FIRST, ann)
    endpoint, _secret = endpoints.create(ann, f"http://127.0.0.1:{closed_port()}/")
    events = [publish_event() for _ in range(30)]
    run_jobs(*BOTH)
    for _ in range(15):
        clock.step(4800)
        run_jobs(WEBHOOK)
    assert {row.state for row in jobs_of(events)} == {State.PENDING}
    charged = [row.attempt for row in jobs_of(events) if row.attempt]
    assert len(charged) <= Webhook.per_destination
    with serving() as server:
        Endpoint.objects.filter(pk=endpoint.pk).update(url=server.url)
        clock.step(1200)
        run_jobs(WEBHOOK)
        done = [row.state for row in jobs_of(events)].count(State.COMPLETED)
    assert done >= 30 - Webhook.per_destination


def test_an_endpoint_gets_no_more_than_its_rate_limit(run_jobs, settings, clock) -> None:
    settings.WEBHOOK_PER_SECOND = 5
    with serving() as server:
        owner(server.url)
        events = [publish_event() for _ in range(40)]
        run_jobs("subscriptions.notify")
        began = events_clock.now()

        def limit() -> float:
            return 5 + 5 * (events_clock.now() - began).total_seconds()

        rounds = 0
        while len(server.requests) < 40 and rounds < 60:
            run_jobs(WEBHOOK)
            assert 5 <= len(server.requests) <= limit()
            attempts = sum(row.attempt for row in jobs_of(events))
            assert attempts <= len(server.requests), "waiting is not charged"
            clock.step(1)
            rounds += 1
    assert rounds <= 30
    assert {row.state for row in jobs_of(events)} == {State.COMPLETED}
    assert max(row.claim_no for row in jobs_of(events)) <= 60
