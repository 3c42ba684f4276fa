from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import uniform

from django.conf import settings
from django.db import transaction

from jobs.backoff import Backoff
from jobs.destinations import breaker, rate_limit
from jobs.destinations.delivery import DeliveryStatus, postpone
from jobs.handler import ClaimedJob
from jobs.models import Job
from jobs.outcomes import Cancel
from net.encryption import DecryptionError
from subscriptions.channels import http_delivery
from subscriptions.channels.base import Deliverable, deliverable_jobs
from subscriptions.channels.http_delivery import (
    DestinationBatch,
    HttpChannel,
    HttpDelivery,
    message_id,
)
from subscriptions.channels.webhook import delivery_log, endpoints
from subscriptions.channels.webhook.message import body_of, request_to
from subscriptions.models import Endpoint
from subscriptions.types.channel import NewDelivery
from subscriptions.types.recipient import Recipient

TRIES_IF_REFUSED = 3
"""After another 4xx: a later try rarely succeeds."""
HELD_SECONDS, LONGEST_HELD_SECONDS = 300.0, 86_400.0
"""How soon a job of a paused endpoint is claimed again: doubled each time. Resume makes it due."""
COUNTED_BACKLOG = 2000
"""Waiting jobs of an endpoint that are counted, at most."""


class Webhook(HttpChannel):
    """POST an event to one endpoint of a user, signed."""

    name = endpoints.QUEUE
    key = "webhook"
    reaches_user = (
        "EXISTS (SELECT FROM subscriptions_endpoint w WHERE w.user_id = u.id"
        " AND w.state <> 'disabled')"
    )
    unreachable_because = "no webhook endpoint"
    fair = True
    batch_size = 50
    # Over three days, as Standard Webhooks recommends; an endpoint that is away costs none of them.
    max_attempts = 10
    backoff = Backoff(5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """One job per endpoint of each recipient, in the lane of the endpoint."""
        recipients = list(recipients)
        endpoint_ids: dict[int | None, list[int]] = defaultdict(list)
        rows = Endpoint.objects.filter(user__in={recipient.user_id for recipient in recipients})
        for user, id in rows.exclude(state="disabled").values_list("user_id", "id"):
            endpoint_ids[user].append(id)
        for recipient in recipients:
            for id in endpoint_ids[recipient.user_id]:
                lane = endpoints.lane_of(id)
                yield NewDelivery(recipient, recipient.key.with_address("endpoint", id), lane)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        batches = dict(_batches(_sendable(jobs)))
        http_delivery.send(self.name, list(batches.values()))
        for id, batch in batches.items():
            _set_outcomes(id, batch)
        with transaction.atomic():
            delivery_log.record(batches)


def _sendable(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[Endpoint, Deliverable]]:
    """Yield the jobs that may be sent now; set the outcomes of the others."""
    recipients = list(deliverable_jobs(jobs))
    known = Endpoint.objects.in_bulk({recipient.address_id for recipient in recipients})
    for recipient in recipients:
        job, endpoint = recipient.job, known.get(recipient.address_id)
        if endpoint is None or endpoint.user_id != recipient.user_id:
            job.outcome = Cancel("the endpoint was deleted")
        elif endpoint.state == Endpoint.State.DISABLED:
            job.outcome = Cancel(f"the endpoint is disabled: {endpoint.reason}")
        elif endpoint.state == Endpoint.State.PAUSED:
            seconds = HELD_SECONDS * 2 ** min(job.claim_no - 1, 10)
            job.snooze(f"held: {endpoint.reason}", seconds=min(seconds, LONGEST_HELD_SECONDS))
        else:
            yield endpoint, recipient


def _batches(
    sendable: Iterable[tuple[Endpoint, Deliverable]],
) -> Iterator[tuple[int, DestinationBatch]]:
    """Yield what each endpoint is sent now; what its breaker or rate limit stops waits."""
    by_endpoint: dict[int, list[tuple[Endpoint, Deliverable]]] = defaultdict(list)
    for endpoint, recipient in sendable:
        by_endpoint[endpoint.pk].append((endpoint, recipient))
    states = http_delivery.breaker_states(map(endpoints.breaker_of, by_endpoint))
    for id, pairs in by_endpoint.items():
        name = endpoints.breaker_of(id)
        batch = DestinationBatch(name, states[name], http_delivery.result_of)
        jobs = [recipient.job for _endpoint, recipient in pairs]
        if batch.breaker_state.wait:
            postpone(jobs, "the endpoint's circuit breaker is open", batch.breaker_state.wait)
            continue
        allowed = _within_rate(name, jobs)
        try:
            batch.deliveries = [_delivery(*pair) for pair in pairs if pair[1].job in allowed]
        except DecryptionError as error:
            reason = f"the endpoint's secret cannot be read: {error}"
            probe = batch.breaker_state.probe
            wait = breaker.record_failure(name, reason, at_once=True, probe=probe)
            postpone(jobs, reason, wait)
            continue
        if batch.deliveries:
            yield id, batch


def _delivery(endpoint: Endpoint, recipient: Deliverable) -> HttpDelivery:
    id = message_id(recipient.job.id, recipient.event)
    body = body_of(recipient.event, recipient.notification.role)
    return HttpDelivery(recipient.job, request_to(endpoint, id, body))


def _within_rate(name: str, jobs: Sequence[ClaimedJob]) -> set[ClaimedJob]:
    """Return the jobs that the endpoint's rate limit allows now.

    The others return at a random time within the span that the endpoint's backlog takes.
    """
    rate = float(settings.WEBHOOK_PER_SECOND)
    for index, job in enumerate(jobs):
        if wait := rate_limit.take_token(name, rate, rate):
            waiting = Job.objects.pending().filter(handler=endpoints.QUEUE, lane=job.lane)
            backlog = len(jobs) - index + len(waiting.values_list("id")[:COUNTED_BACKLOG])
            for late in jobs[index:]:
                seconds = wait + uniform(0, backlog / rate)  # noqa: S311
                late.snooze(f"the endpoint is sent {rate:g} per second", seconds=seconds)
            return set(jobs[:index])
    return set(jobs)


def _set_outcomes(id: int, batch: DestinationBatch) -> None:
    """Set the outcomes of an endpoint's jobs; what it refused is tried a few times more."""
    results = http_delivery.set_outcomes(endpoints.QUEUE, batch, endpoints.lane_of(id))
    for delivery, result in zip(batch.deliveries, results, strict=True):
        job, reply = delivery.job, delivery.reply
        redirected = reply is not None and 300 <= (reply.status or 0) < 400
        if (
            result.status is DeliveryStatus.REJECTED
            and not redirected
            and job.attempt < TRIES_IF_REFUSED
        ):
            job.retry(result.reason)
