"""One dead endpoint of 200: the others get theirs as soon as without it (`make fairness`)."""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from statistics import quantiles

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import Breaker, Job
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Endpoint, Notification
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.servers.web import ReceivedRequest, Response, serving, silent_port
from tests.subscriptions.channels.webhook.kit import WEBHOOK
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db(transaction=True)

ENDPOINTS = 200
EVENTS, EVERY_SECONDS = 60, 1.0
FIRST = 10
"""Events of a run whose delays do not count: processes start, and plans are made."""
AT_ONCE = 20
"""Endpoints that get one event, beside the dead one, which gets all."""


@pytest.mark.skipif(
    not os.environ.get("FAIRNESS"), reason="compares times, so it wants the machine to itself"
)
def test_a_dead_endpoint_delays_the_others_by_under_10_percent(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    env = process_env | {"WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
    ann = person("ann")
    with silent_port() as port:
        dead, _secret = endpoints.create(ann, f"http://127.0.0.1:{port}/")
        delays: dict[bool, list[float]] = {False: [], True: []}
        for tried in (False, True) * 2:
            delays[tried] += delays_of_a_run(ann, env, tmp_path / "worker.log", dead, tried=tried)
    alone, beside = (quantiles(delays[tried], n=100)[98] for tried in (False, True))
    sys.stdout.write(
        f"\np99 of the others: {alone:.3f} s without a dead one, {beside:.3f} s with it\n"
    )
    assert beside < 1.1 * alone
    assert dead.deliveries.exists(), "it was tried"
    assert dead.deliveries.count() < 24, "and then left alone"


def delays_of_a_run(
    ann: User, env: dict[str, str], log: Path, dead: Endpoint, *, tried: bool
) -> list[float]:
    """Publish for a minute; return the delays of the living, in seconds."""
    empty_broker()
    Breaker.objects.all().delete()
    Job.objects.all().delete()
    Endpoint.objects.exclude(pk=dead.pk).delete()
    arrived: dict[tuple[str, int], float] = {}

    def respond(request: ReceivedRequest) -> Response:
        arrived[request.path, json.loads(request.body)["data"]["event"]] = time.monotonic()
        return Response()

    began: dict[int, float] = {}
    with serving(respond) as server, worker(env, [WEBHOOK], log=log, concurrency=2):
        living = Endpoint.objects.bulk_create(
            Endpoint(user=ann, url=f"{server.url}/{number}", secret=encrypt(new_secret()))
            for number in range(ENDPOINTS - 1)
        )
        for n in range(EVENTS):
            these = [living[(n * AT_ONCE + k) % len(living)].pk for k in range(AT_ONCE)]
            now = time.monotonic()
            began[tell(ann, [dead.pk, *these] if tried else these)] = now
            wait_until(partial(passed, now + EVERY_SECONDS), 10, "the next event's time")
            tick.tick()
        wait_until(lambda: len(arrived) == AT_ONCE * EVENTS, 60, "all have theirs")
    warm = sorted(began)[FIRST:]
    return [at - began[event] for (_path, event), at in arrived.items() if event in warm]


def passed(moment: float) -> bool:
    return time.monotonic() >= moment


def tell(ann: User, endpoints: list[int]) -> int:
    """Owe each endpoint one delivery of a new event; return its id."""
    with transaction.atomic():
        (event,) = publish(NewEvent(Happened))
        Notification.objects.create(event_id=event.id, user=ann, role="r")
        enqueue_many(
            WEBHOOK,
            (
                {"event_id": event.id, "routing_key": f"user:{ann.pk}:endpoint:{id}",
                 "lane": f"endpoint:{id}"}
                for id in endpoints
            ),
        )  # fmt: skip
    return event.id
