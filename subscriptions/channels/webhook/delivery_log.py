"""Record delivery attempts to endpoints, and disable endpoints that keep failing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tailrace.db import clock
from tailrace.jobs.destinations.handler import Delivery as Sent
from tailrace.jobs.handler import Cancel, ClaimedJob, Completed, Retry, Snooze
from tailrace.net.http_client import Reply
from tailrace.subscriptions.channels.http_channel import HttpMessage
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Delivery, Endpoint
from tailrace.subscriptions.types.recipient import address_id

GONE = 410
Outcome = Delivery.Outcome
Attempts = Sequence[Sent[HttpMessage]]


def record(deliveries: Attempts) -> None:
    """Store these attempts, whose jobs have outcomes; disable endpoints that replied 410 or have
    failed for too long, and cancel their jobs. Call it in a transaction: it locks the endpoints, so
    that they cannot be deleted at the same time."""
    by_endpoint: dict[int, list[Sent[HttpMessage]]] = defaultdict(list)
    for delivery in deliveries:
        by_endpoint[address_id(delivery.job.routing_key)].append(delivery)
    locked = Endpoint.objects.select_for_update(no_key=True).order_by("pk")
    existing = [endpoint.pk for endpoint in locked.filter(pk__in=by_endpoint)]
    attempts = {id: by_endpoint[id] for id in existing}
    for id, reason in _endpoints_to_disable(attempts).items():
        endpoints.disable_failing(id, reason)
        for delivery in attempts[id]:
            if not isinstance(delivery.job.outcome, Completed):
                delivery.job.outcome = Cancel(f"the endpoint is disabled: {reason}")
    Delivery.objects.bulk_create(
        _row(id, delivery, reply)
        for id in existing
        for delivery in attempts[id]
        if (reply := delivery.message.reply)
    )


def _endpoints_to_disable(attempts: Mapping[int, Attempts]) -> dict[int, str]:
    """Return the ids of the endpoints to disable, with the reasons."""
    pairs = [(id, delivery) for id, deliveries in attempts.items() for delivery in deliveries]
    replies = [(id, delivery.message.reply) for id, delivery in pairs]
    gone = {id for id, reply in replies if reply and _is_gone(reply)}
    succeeded = {id for id, delivery in pairs if isinstance(delivery.job.outcome, Completed)}
    failing = set(attempts)
    too_long = endpoints.update_health(succeeded - gone, failing - succeeded - gone)
    reason = f"it has failed for {endpoints.FAILING_DAYS} days"
    return dict.fromkeys(gone, "it answered 410 Gone") | dict.fromkeys(too_long, reason)


def _is_gone(reply: Reply) -> bool:
    return reply.arrived and reply.status == GONE


def _row(id: int, delivery: Sent[HttpMessage], reply: Reply) -> Delivery:
    job, outcome = delivery.job, _outcome(delivery.job, reply)
    error = reply.error or delivery.result.reason
    return Delivery(
        endpoint_id=id,
        job_id=job.id,
        event_id=job.event_id,
        message_id=delivery.message.request.headers["webhook-id"],
        attempt=job.attempt,
        at=clock.now(),
        milliseconds=reply.milliseconds,
        status=reply.status,
        outcome=outcome,
        error="" if outcome == Outcome.OK else error,
        answer=reply.text,
    )


def _outcome(job: ClaimedJob, reply: Reply) -> Delivery.Outcome:
    if _is_gone(reply):
        return Outcome.GONE
    if isinstance(job.outcome, Completed):
        return Outcome.OK
    again = isinstance(job.outcome, Retry) and job.attempt < job.max_attempts
    return Outcome.RETRY if again or isinstance(job.outcome, Snooze) else Outcome.FAILED
