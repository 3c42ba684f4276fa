"""What the tests of webhooks share: people with endpoints at a local server, and their jobs."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from standardwebhooks import Webhook

from events.publish import Recorded
from jobs.models import Job
from subscriptions import endpoints
from subscriptions.models import Delivery, Endpoint
from tests.servers.web import Asked
from tests.subscriptions.stage import FIRST, hold, person

WEBHOOK = "subscriptions.webhook"
BOTH = ("subscriptions.notify", WEBHOOK)


def owner(url: str, login: str = "ann") -> tuple[User, Endpoint, str]:
    """Return a person who owns what happens, an endpoint of theirs, and its secret."""
    user = person(login)
    hold(FIRST, user)
    return user, *endpoints.create(user, url)


def jobs_of(events: Recorded | Sequence[Recorded] = (), **where: Any) -> list[Job]:
    wanted = [events] if isinstance(events, Recorded) else list(events)
    found = Job.objects.filter(handler=WEBHOOK, **where).order_by("id")
    return list(found.filter(event__in=[event.id for event in wanted]) if wanted else found)


def job() -> Job:
    """Return the one delivery there is."""
    return Job.objects.get(handler=WEBHOOK)


def tries(endpoint: Endpoint) -> list[tuple[int, int | None, str]]:
    """Return (attempt, status, outcome) of each try, the oldest first."""
    rows = Delivery.objects.filter(endpoint=endpoint).order_by("id")
    return list(rows.values_list("attempt", "status", "outcome"))


def verify(asked: Asked, secret: str) -> Any:
    """Check what came as a receiver does, with the library of Standard Webhooks."""
    return Webhook(secret).verify(asked.body, asked.headers)
