from collections.abc import Iterable, Iterator, Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import F

from tailrace.jobs.destinations import breaker
from tailrace.jobs.destinations.delivery import DeliveryStatus, postpone
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.handler import Backoff, Cancel, ClaimedJob
from tailrace.net.encryption import DecryptionError
from tailrace.subscriptions.channels.base import Deliverable, deliverable_jobs
from tailrace.subscriptions.channels.http_channel import HttpChannel, HttpMessage, addresses_of
from tailrace.subscriptions.channels.webhook import delivery_log
from tailrace.subscriptions.channels.webhook.hosts import QUEUE, host_limit
from tailrace.subscriptions.channels.webhook.message import body_of, request_to, webhook_id
from tailrace.subscriptions.channels.webhook.operations import endpoints, filters
from tailrace.subscriptions.models import Endpoint
from tailrace.subscriptions.types.channel import NewDelivery
from tailrace.subscriptions.types.recipient import Recipient

TRIES_IF_REFUSED = 3
"""Attempts if the endpoint replies with a 4xx other than 408, 410 or 429."""
HELD_SECONDS, LONGEST_HELD_SECONDS = 300.0, 86_400.0
"""The snooze of a job of a paused endpoint, which doubles each time: the first, and the maximum."""


class Webhook(HttpChannel[HttpMessage]):
    """POST an event, signed, to one endpoint of a user."""

    name = QUEUE
    key = "webhook"
    reaches_user = (
        "EXISTS (SELECT FROM tailrace_subscriptions_endpoint w WHERE w.user_id = u.id"
        " AND w.state <> 'disabled')"
    )
    unreachable_because = "no webhook endpoint"
    fair = True
    # Over three days, as Standard Webhooks recommends. While the endpoint is unavailable, no
    # attempts are counted.
    max_attempts = 10
    backoff = Backoff(5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """Yield one job per endpoint of each recipient, in the lane of the endpoint."""
        recipients = list(recipients)
        rows = Endpoint.objects.filter(user__in={recipient.user_id for recipient in recipients})
        if settings.WEBHOOK_CONFIRM:
            rows = rows.filter(confirmed_url=F("url"))
        live = list(rows.exclude(state="disabled").order_by("id"))
        wants = filters.event_filter(live, {recipient.event_id for recipient in recipients})
        for recipient, row in addresses_of(recipients, live):
            if wants(row, recipient.event_id):
                key = recipient.key.with_address("endpoint", row.pk)
                yield NewDelivery(recipient, key, endpoints.lane_of(row.pk))

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, HttpMessage]]:
        for endpoint, recipient in _sendable(jobs):
            job, event = recipient.job, recipient.event
            id = webhook_id(job.id, job.routing_key, event)
            try:
                request = request_to(endpoint, id, body_of(event, recipient.notification.role))
            except DecryptionError as error:
                reason = f"the endpoint's secret cannot be read: {error}"
                name = endpoints.breaker_of(endpoint.pk)
                postpone([job], reason, breaker.record_failure(name, reason, at_once=True))
            else:
                yield job, HttpMessage(request)

    def messages_per_second(self) -> float:
        return float(settings.WEBHOOK_PER_SECOND)

    def shared_rate(self, message: HttpMessage) -> tuple[str, float]:
        return host_limit(message.request.url)

    def finish(self, deliveries: Sequence[Delivery[HttpMessage]]) -> None:
        for delivery in deliveries:
            _try_again_if_refused(delivery)
        with transaction.atomic():
            delivery_log.record(deliveries)


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
        elif not endpoint.confirmed:
            job.outcome = Cancel("the endpoint's URL is not confirmed")
        elif endpoint.state == Endpoint.State.PAUSED:
            seconds = HELD_SECONDS * 2 ** min(job.claim_no - 1, 10)
            job.snooze(f"held: {endpoint.reason}", seconds=min(seconds, LONGEST_HELD_SECONDS))
        else:
            yield endpoint, recipient


def _try_again_if_refused(delivery: Delivery[HttpMessage]) -> None:
    """Retry a rejected delivery up to TRIES_IF_REFUSED attempts, unless it was redirected."""
    reply, result = delivery.message.reply, delivery.result
    redirected = reply is not None and 300 <= (reply.status or 0) < 400
    if (
        result.status is DeliveryStatus.REJECTED
        and not redirected
        and delivery.job.attempt < TRIES_IF_REFUSED
    ):
        delivery.job.retry(result.reason)
