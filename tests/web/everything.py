"""A program that may do everything, and has something of each kind: for tests of all operations."""

from typing import Any

from django.contrib.auth.models import User

from tailrace.db.query import database_now
from tailrace.jobs.models import Job
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.channels.webhook.history import recovery
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Block, Delivery, Endpoint, InboxItem
from tests.jobs.admin.flows import chain
from tests.owned_objects import of_all_domains
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.web.jobs.requesting import OPERATOR
from tests.web.program import Program, program

MAY = (
    "tailrace_events.view_event", "tailrace_events.add_event", "tailrace_events.view_payload",
    "tailrace_subscriptions.view_notification", "tailrace_jobs.view_flow",
    "tailrace_jobs.change_flow_state", *OPERATOR,
)  # fmt: skip


def without_limits(settings: Any) -> None:
    """Let requests count as nothing."""
    settings.API_RATE = settings.API_BURST = 1_000_000
    settings.USER_RATE = settings.USER_BURST = 1_000_000


def owner_of_everything(*may: str) -> Program:
    """Return a program of ann's with these permissions, by default those of an operator."""
    result = program("ann", may=may or MAY)
    assign_role(FIRST, result.user)
    result.ids = something_of_each(result.user)
    return result


def something_of_each(user: User) -> dict[str, int]:
    """Create one object of each kind and return their ids by the word before them in a URL."""
    event = publish_event()
    inbox.put(event, user=user, group=None, role=FIRST)
    endpoint = Endpoint.objects.create(
        user=user, url="https://[::1]:1/", secret=encrypt(new_secret())
    )
    delivery = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_1", attempt=1, milliseconds=1, outcome="failed"
    )
    return {
        "events": event.id,
        "jobs": Job.objects.get(event=event.id, handler="subscriptions.notify").pk,
        "flows": chain(2).pk,
        "subscriptions": subscribe(user=user).pk,
        "blocks": Block.objects.create(user=user, blocked=person("bob")).pk,
        "inbox": InboxItem.objects.get(user=user).pk,
        "feeds": make_feed(user)[0].pk,
        "endpoints": endpoint.pk,
        "deliveries": delivery.pk,
        "tests": (test := endpoints.send_test(endpoint)),
        "messages": test,
        "recoveries": recovery.start(endpoint, "failed", database_now(), user),
        **of_all_domains(user),
    }
