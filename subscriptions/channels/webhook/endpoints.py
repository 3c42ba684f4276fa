"""What owners and operators do with webhook endpoints. Pages and API call these functions.

    enabled <-> paused               its deliveries are held until it is resumed
    enabled, paused -> disabled      by hand, by a reply 410, or after five days of failures:
                                     its waiting deliveries are cancelled
    disabled -> enabled

Each move is one guarded UPDATE. Only the caller whose UPDATE changed the row does the rest.
"""

import uuid
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from db import clock
from db.query import database_now, query
from jobs.destinations import delivery, rate_limit
from jobs.enqueue import enqueue
from jobs.models import Breaker, Bucket, Job
from jobs.operations.cancel import cancel
from jobs.operations.replay import replay as replay_jobs
from net import http_client, ssrf_guard
from net.encryption import DecryptionError, encrypt
from net.signing import new_secret
from subscriptions.channels.webhook.message import body_of_test, request_to
from subscriptions.channels.webhook.owner_mail import EndpointDisabled
from subscriptions.models import Delivery, Endpoint

QUEUE = "subscriptions.webhook"
SECRET_OVERLAP = timedelta(hours=24)
"""How long an old secret signs as well as the new one."""
MAX_ENDPOINTS = 50
"""Of one user."""
FAILING_DAYS = 5
"""After so many days without a success an endpoint is disabled."""
TESTS_PER_SECOND, TEST_BURST = 0.1, 5
CANCEL_BATCH = 5000

State = Endpoint.State


class EndpointError(ValueError):
    """The request was refused; the message names the value and what to do."""


def lane_of(id: int) -> str:
    return f"endpoint:{id}"


def breaker_of(id: int) -> str:
    return f"{QUEUE}:{lane_of(id)}"


def create(user: User, url: str, description: str = "") -> tuple[Endpoint, str]:
    """Return a new endpoint and its secret, which cannot be read again.

    Raises EndpointError for a URL that nothing may be sent to.
    """
    if user.endpoints.count() >= MAX_ENDPOINTS:
        raise EndpointError(
            f"{user} already has {MAX_ENDPOINTS} endpoints, the maximum: delete one first"
        )
    secret = new_secret()
    endpoint = Endpoint.objects.create(
        user=user, url=_checked(url), description=description.strip(), secret=encrypt(secret)
    )
    return endpoint, secret


def change(endpoint: Endpoint, *, url: str | None = None, description: str | None = None) -> None:
    """Change the URL or the description."""
    if url is not None:
        endpoint.url = _checked(url)
    if description is not None:
        endpoint.description = description.strip()
    endpoint.save(update_fields=["url", "description"])


def rotate(endpoint: Endpoint) -> str:
    """Return a new secret. For SECRET_OVERLAP the old one signs too."""
    secret = new_secret()
    with transaction.atomic():
        locked = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        locked.old_secret, locked.old_secret_until = locked.secret, database_now() + SECRET_OVERLAP
        locked.secret = encrypt(secret)
        locked.save(update_fields=["secret", "old_secret", "old_secret_until"])
    endpoint.refresh_from_db()
    return secret


def send_test(endpoint: Endpoint) -> Delivery:
    """Send a test at once, whatever the endpoint's state, and return the recorded attempt."""
    wait = rate_limit.take_token(f"{breaker_of(endpoint.pk)}:test", TESTS_PER_SECOND, TEST_BURST)
    if wait:
        raise EndpointError(f"too many tests of this endpoint: try again in {wait:.0f} s")
    id = f"msg_test_{uuid.uuid4().hex}"
    try:
        reply = http_client.post(request_to(endpoint, id, body_of_test()))
    except DecryptionError as error:
        raise EndpointError(f"the endpoint's secret cannot be read: {error}") from None
    ok = reply.arrived and 200 <= (reply.status or 0) < 300
    return Delivery.objects.create(
        endpoint=endpoint,
        message_id=id,
        attempt=1,
        at=clock.now(),
        milliseconds=reply.milliseconds,
        status=reply.status,
        outcome=Delivery.Outcome.OK if ok else Delivery.Outcome.FAILED,
        error="" if ok else reply.error or f"answered {reply.status}",
        answer=reply.text,
    )


def deliveries_of(endpoint: Endpoint) -> QuerySet[Delivery]:
    """Return the attempts to deliver to it, the newest first."""
    return endpoint.deliveries.order_by("-id")


def replay(delivery: Delivery | Job, by: str = "its owner") -> int:
    """Repeat a failed or cancelled delivery with the same webhook-id; return the id of its job."""
    id = delivery.job_id if isinstance(delivery, Delivery) else delivery.pk
    if id is None:
        raise EndpointError("a test delivery has no job: send another test")
    job = Job.objects.filter(pk=id, handler=QUEUE).first()
    if job is None:
        raise EndpointError(f"job {id} is not a delivery, or was deleted after its retention")
    endpoint = Endpoint.objects.filter(pk=job.lane.rpartition(":")[2]).first()
    if endpoint is None or endpoint.state == State.DISABLED:
        raise EndpointError(f"{job.lane} is disabled or deleted: enable it first")
    result = replay_jobs([id], by=by)
    if not result.changed:
        raise EndpointError(f"job {id} is not sent again: {result.refused[id]}")
    return id


def pause(endpoint: Endpoint, by: str = "its owner") -> None:
    """Hold its deliveries from now on."""
    _move(endpoint, {State.ENABLED}, State.PAUSED, f"paused by {by}")


def resume(endpoint: Endpoint, by: str = "its owner") -> None:
    """Send again, beginning with the held deliveries."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED}, State.ENABLED, "")
        delivery.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)


def enable(endpoint: Endpoint, by: str = "its owner") -> None:
    """Send again to a disabled or paused endpoint, and forget its failures."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED, State.DISABLED}, State.ENABLED, "")
        Endpoint.objects.filter(pk=endpoint.pk).update(failing_since=None)
        Breaker.objects.filter(name=breaker_of(endpoint.pk)).delete()
        delivery.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)
    endpoint.refresh_from_db()


def disable(endpoint: Endpoint, reason: str = "", by: str = "its owner") -> None:
    """Send nothing more, and cancel its waiting deliveries."""
    with transaction.atomic():
        reason = reason or f"disabled by {by}"
        _move(endpoint, {State.ENABLED, State.PAUSED}, State.DISABLED, reason)
        cancel_waiting(endpoint.pk, f"{by}, who disabled the endpoint")


def delete(endpoint: Endpoint, by: str = "its owner") -> None:
    """Delete it with its delivery log, and cancel its waiting deliveries."""
    id = endpoint.pk
    with transaction.atomic():
        endpoint.delete()
        cancel_waiting(id, f"{by}, who deleted the endpoint")
        Breaker.objects.filter(name=breaker_of(id)).delete()
        Bucket.objects.filter(name__in=[breaker_of(id), f"{breaker_of(id)}:test"]).delete()


def disable_failing(id: int, reason: str) -> bool:
    """Disable it because of its replies and mail its owner; False if it is disabled already.

    Call it in a transaction.
    """
    changed = (
        Endpoint.objects.filter(pk=id)
        .exclude(state=State.DISABLED)
        .update(state=State.DISABLED, reason=reason)
    )
    if changed:
        cancel_waiting(id, f"Tailrace: the endpoint is disabled, {reason}")
        enqueue(EndpointDisabled, {"endpoint": id, "reason": reason})
    return bool(changed)


_START_FAILING = f"""
UPDATE subscriptions_endpoint SET failing_since = coalesce(failing_since, {clock.NOW})
WHERE id = ANY(%(ids)s) AND state <> 'disabled'
RETURNING id, failing_since <= {clock.NOW} - make_interval(days => %(days)s)
"""


def update_health(succeeded: set[int], failing: set[int]) -> set[int]:
    """Record which endpoints succeeded or failed; return those that failed for FAILING_DAYS."""
    if succeeded:
        Endpoint.objects.filter(pk__in=succeeded, failing_since__isnull=False).update(
            failing_since=None
        )
    if not failing:
        return set()
    rows = query(_START_FAILING, ids=sorted(failing), days=FAILING_DAYS)
    return {id for id, too_long in rows if too_long}


def cancel_waiting(id: int, by: str) -> None:
    """Cancel the waiting deliveries of the endpoint."""
    waiting = Job.objects.pending().filter(handler=QUEUE, lane=lane_of(id))
    while ids := list(waiting.values_list("id", flat=True)[:CANCEL_BATCH]):
        cancel(ids, by=by)


def _move(endpoint: Endpoint, before: set[State], after: State, reason: str) -> None:
    rows = Endpoint.objects.filter(pk=endpoint.pk)
    if not rows.filter(state__in=before).update(state=after, reason=reason):
        state = rows.values_list("state", flat=True).first() or "deleted"
        raise EndpointError(f"endpoint {endpoint.pk} is {state}, not {', '.join(sorted(before))}")
    endpoint.state, endpoint.reason = after, reason


def _checked(url: str) -> str:
    try:
        return str(ssrf_guard.check_url(url.strip()))
    except ssrf_guard.AddressRefused as error:
        raise EndpointError(str(error)) from None
