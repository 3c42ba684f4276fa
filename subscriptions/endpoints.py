"""endpoints: what owners and operators do with webhook endpoints. Pages and API call these.

    enabled <-> paused      its deliveries are held, and released when it is resumed
    enabled, paused -> disabled      by hand, by an answer 410, or after five days of failure:
                                     what waits for it is cancelled
    disabled -> enabled

Each move is one guarded UPDATE; whoever made it does what belongs to it.
"""

import uuid
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import QuerySet

from events import clock
from jobs import bucket, destination, operate
from jobs.enqueue import enqueue
from jobs.models import Breaker, Bucket, Job
from subscriptions import guard, sending
from subscriptions.endpoint_mail import EndpointDisabled
from subscriptions.models import Delivery, Endpoint
from subscriptions.sealing import Unreadable, seal
from subscriptions.signing import new_secret
from subscriptions.webhooks import body_of_test, request_to

QUEUE = "subscriptions.webhook"
OVERLAP = timedelta(hours=24)
"""How long an old secret signs beside the new one."""
MOST = 50
"""Endpoints that one person may have."""
FAILING_DAYS = 5
"""After so many days without a success an endpoint is disabled."""
TESTS_PER_SECOND, TESTS_AT_ONCE = 0.1, 5
CANCELLED_AT_ONCE = 5000

State = Endpoint.State


class EndpointError(ValueError):
    """It cannot be done; the text names the value and the way out."""


def lane_of(id: int) -> str:
    return f"endpoint:{id}"


def breaker_of(id: int) -> str:
    return f"{QUEUE}:{lane_of(id)}"


def create(user: User, url: str, description: str = "") -> tuple[Endpoint, str]:
    """Return a new endpoint of the user and its secret, which is shown this once.

    Raises EndpointError for a URL that nothing may be sent to.
    """
    if user.endpoints.count() >= MOST:
        raise EndpointError(f"{user} has {MOST} endpoints, which is the most: delete one first")
    secret = new_secret()
    endpoint = Endpoint.objects.create(
        user=user, url=_checked(url), description=description.strip(), secret=seal(secret)
    )
    return endpoint, secret


def change(endpoint: Endpoint, *, url: str | None = None, description: str | None = None) -> None:
    """Change where it is, or what its owner calls it."""
    if url is not None:
        endpoint.url = _checked(url)
    if description is not None:
        endpoint.description = description.strip()
    endpoint.save(update_fields=["url", "description"])


def rotate(endpoint: Endpoint) -> str:
    """Return a new secret. For 24 hours the old one signs too."""
    secret = new_secret()
    with transaction.atomic():
        held = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        held.old_secret, held.old_secret_until = held.secret, clock.now() + OVERLAP
        held.secret = seal(secret)
        held.save(update_fields=["secret", "old_secret", "old_secret_until"])
    endpoint.refresh_from_db()
    return secret


def test_delivery(endpoint: Endpoint) -> Delivery:
    """Send a test here and now, whatever the endpoint's state; return what came of it."""
    wait = bucket.take(f"{breaker_of(endpoint.pk)}:test", TESTS_PER_SECOND, TESTS_AT_ONCE)
    if wait:
        raise EndpointError(f"too many tests of this endpoint: try again in {wait:.0f} s")
    id = f"msg_test_{uuid.uuid4().hex}"
    try:
        reply = sending.post(request_to(endpoint, id, body_of_test()))
    except Unreadable as error:
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
    """Return the tries to deliver to it, the newest first."""
    return endpoint.deliveries.order_by("-id")


def replay(what: Delivery | Job, by: str = "its owner") -> int:
    """Have a failed or cancelled delivery made again, with the same webhook-id; return its job."""
    id = what.job_id if isinstance(what, Delivery) else what.pk
    if id is None:
        raise EndpointError("a test delivery has no job: send another test")
    job = Job.objects.filter(pk=id, handler=QUEUE).first()
    if job is None:
        raise EndpointError(f"job {id} is no delivery, or is past its retention")
    endpoint = Endpoint.objects.filter(pk=job.lane.rpartition(":")[2]).first()
    if endpoint is None or endpoint.state == State.DISABLED:
        raise EndpointError(f"{job.lane} is disabled or deleted: enable it first")
    done = operate.replay([id], by=by)
    if not done.ids:
        raise EndpointError(f"job {id} is not sent again: {done.refused[id]}")
    return id


def pause(endpoint: Endpoint, by: str = "its owner") -> None:
    """Hold its deliveries from now on. EndpointError if it is disabled."""
    _move(endpoint, {State.ENABLED}, State.PAUSED, f"paused by {by}")


def resume(endpoint: Endpoint, by: str = "its owner") -> None:
    """Send again, beginning with what was held."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED}, State.ENABLED, "")
        destination.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)


def enable(endpoint: Endpoint, by: str = "its owner") -> None:
    """Send again to an endpoint that was disabled or paused, as if it had never failed."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED, State.DISABLED}, State.ENABLED, "")
        Endpoint.objects.filter(pk=endpoint.pk).update(failing_since=None)
        Breaker.objects.filter(name=breaker_of(endpoint.pk)).delete()
        destination.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)
    endpoint.refresh_from_db()


def disable(endpoint: Endpoint, reason: str = "", by: str = "its owner") -> None:
    """Send nothing any more, and cancel what waits."""
    with transaction.atomic():
        words = reason or f"disabled by {by}"
        _move(endpoint, {State.ENABLED, State.PAUSED}, State.DISABLED, words)
        cancel_waiting(endpoint.pk, f"{by}, who disabled the endpoint")


def delete(endpoint: Endpoint, by: str = "its owner") -> None:
    """Forget it, with its deliveries, and cancel what waits."""
    id = endpoint.pk
    with transaction.atomic():
        endpoint.delete()
        cancel_waiting(id, f"{by}, who deleted the endpoint")
        Breaker.objects.filter(name=breaker_of(id)).delete()
        Bucket.objects.filter(name__in=[breaker_of(id), f"{breaker_of(id)}:test"]).delete()


def disable_for(id: int, reason: str) -> bool:
    """Disable it because of how it answers, and tell its owner; False if somebody else has.

    To be called in a transaction.
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


def heard_from(well: set[int], failing: set[int]) -> set[int]:
    """Note how endpoints answered; return those that have failed for FAILING_DAYS by now."""
    if well:
        Endpoint.objects.filter(pk__in=well, failing_since__isnull=False).update(failing_since=None)
    if not failing:
        return set()
    with connection.cursor() as cursor:
        asked = {"ids": sorted(failing), "days": FAILING_DAYS}
        cursor.execute(_FAILING, clock.params() | asked)
        return {id for id, too_long in cursor.fetchall() if too_long}


_FAILING = f"""
UPDATE subscriptions_endpoint SET failing_since = coalesce(failing_since, {clock.NOW})
WHERE id = ANY(%(ids)s) AND state <> 'disabled'
RETURNING id, failing_since <= {clock.NOW} - make_interval(days => %(days)s)
"""


def cancel_waiting(id: int, by: str) -> None:
    """Cancel the deliveries that wait for the endpoint."""
    waiting = Job.objects.pending().filter(handler=QUEUE, lane=lane_of(id))
    while ids := list(waiting.values_list("id", flat=True)[:CANCELLED_AT_ONCE]):
        operate.cancel(ids, by=by)


def _move(endpoint: Endpoint, before: set[State], after: State, reason: str) -> None:
    changed = Endpoint.objects.filter(pk=endpoint.pk, state__in=before).update(
        state=after, reason=reason
    )
    state = Endpoint.objects.filter(pk=endpoint.pk).values_list("state", flat=True).first()
    if not changed:
        words = ", ".join(sorted(before))
        raise EndpointError(f"endpoint {endpoint.pk} is {state or 'gone'}, not {words}")
    endpoint.state, endpoint.reason = after, reason


def _checked(url: str) -> str:
    try:
        return str(guard.check_url(url.strip()))
    except guard.Refused as error:
        raise EndpointError(str(error)) from None
