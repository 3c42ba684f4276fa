"""What the tests of webhooks share: people with endpoints at a local server, and their jobs."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from standardwebhooks import Webhook

from tailrace.events.publish import Recorded
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Delivery, Endpoint
from tests.servers.web import ReceivedRequest
from tests.subscriptions.sample_domain import FIRST, assign_role, person

WEBHOOK = "subscriptions.webhook"
TEST = "subscriptions.webhook_test"
BOTH = ("subscriptions.notify", WEBHOOK)


def owner(url: str, login: str = "ann") -> tuple[User, Endpoint, str]:
    """Return a person who owns what happens, an endpoint of theirs, and its secret."""
    user = person(login)
    assign_role(FIRST, user)
    return user, *endpoints.create(user, url)


def jobs_of(events: Recorded | Sequence[Recorded] = (), **where: Any) -> list[Job]:
    events = [events] if isinstance(events, Recorded) else list(events)
    jobs = Job.objects.filter(handler=WEBHOOK, **where).order_by("id")
    return list(jobs.filter(event__in=[event.id for event in events]) if events else jobs)


def job() -> Job:
    """Return the one delivery there is."""
    return Job.objects.get(handler=WEBHOOK)


def tries(endpoint: Endpoint) -> list[tuple[int, int | None, str]]:
    """Return (attempt, status, outcome) of each try, the oldest first."""
    rows = Delivery.objects.filter(endpoint=endpoint).order_by("id")
    return list(rows.values_list("attempt", "status", "outcome"))


def sent_test(endpoint: Endpoint) -> Delivery:
    """Send a test to the endpoint; return its result."""
    id = endpoints.send_test(endpoint)
    drain(TEST)
    job = endpoints.test_job(endpoint, id)
    assert job is not None
    delivery = endpoints.test_result(endpoint, job)
    assert delivery is not None
    return delivery


def verify(request: ReceivedRequest, secret: str) -> Any:
    """Check what came as a receiver does, with the library of Standard Webhooks."""
    return Webhook(secret).verify(request.body, request.headers)
