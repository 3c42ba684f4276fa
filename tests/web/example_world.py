"""Things of the real apps, for the examples of the API's documentation."""

from typing import Any

from tailrace.db.query import database_now
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Flow, Job
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.channels.webhook.history import recovery
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Block, Delivery, Endpoint, EventSubscription, InboxItem
from tests.owned_objects import of_all_domains
from tests.subscriptions.sample_domain import person
from tests.web.everything import MAY, without_limits
from tests.web.program import Program, program

FAILED = {"project": "devel", "package": "hello", "repository": "standard", "arch": "x86_64"}
REFRESH = {"backend": "main", "project": "devel", "package": "hello"}


def example_world(settings: Any) -> Program:
    """Return a program of ann's, who may do everything, with something of each kind."""
    without_limits(settings)
    sync_declared.sync()
    ann = program("ann", may=MAY)
    ann.user.is_superuser = True
    ann.user.save()
    ann.ids = _something_of_each(ann)
    return ann


def _something_of_each(ann: Program) -> dict[str, Any]:
    """Return ids by the word before them in an address, and jobs in some states by the id of the
    operation that needs such a one."""
    user, bob = ann.user, person("bob")
    person("carol")
    (event,) = publish(NewEvent("builds.build_fail", FAILED, source="/ci", source_id="build-4711"))
    inbox.put(event, user=user, group=None, role="maintainer")
    endpoint = Endpoint.objects.create(
        user=user, url="https://example.org/hook", secret=encrypt(new_secret())
    )
    delivery = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_1", attempt=1, milliseconds=87, outcome="failed"
    )
    subscription = EventSubscription.objects.create(
        user=user, event_type="builds.build_fail", role="maintainer", channel="mail"
    )
    failed = _job("failed", error="the backend answered 500", attempt=4)
    return {
        "events": event.id,
        "jobs": failed,
        "flows": _flow(),
        "operations_resume_flow": _flow(paused_by="ann", paused_at=database_now()),
        "operations_retry_flow": _flow("cancelled"),
        "operations_cancel_job": _job("pending"),
        "operations_reschedule_job": _job("pending"),
        "operations_retry_job": _job("pending", due_at="2026-12-24T18:00:00Z"),
        "subscriptions": subscription.pk,
        "blocks": Block.objects.create(user=user, blocked=bob).pk,
        "inbox": InboxItem.objects.get(user=user).pk,
        "feeds": make_feed(user)[0].pk,
        "endpoints": endpoint.pk,
        "deliveries": delivery.pk,
        "tests": (test := endpoints.send_test(endpoint)),
        "messages": test,
        "recoveries": recovery.start(endpoint, "failed", database_now(), user),
        **of_all_domains(user),
    }


def _flow(state: str = "pending", **fields: Any) -> int:
    flow = NewFlow("refresh devel/hello")
    flow.chain([("builds.update_backend_infos", REFRESH)] * 2)
    id = flow.enqueue()
    if fields:
        Flow.objects.filter(pk=id).update(**fields)
    now = database_now()
    first = Job.objects.filter(flow_id=id, state="pending")
    first.update(state=state, started_at=now, finished_at=now if state == "cancelled" else None)
    return id


def _job(state: str, **fields: Any) -> int:
    job = Job.objects.create(
        handler="builds.update_backend_infos", state=state, payload=REFRESH, **fields
    )
    return job.pk
