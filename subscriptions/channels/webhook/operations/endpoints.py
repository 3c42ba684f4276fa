"""The operations on webhook endpoints, for pages and API.

    enabled <-> paused               deliveries wait until the endpoint is resumed
    enabled, paused -> disabled      by a user, by a 410 reply, or after five days of failures;
                                     waiting deliveries are cancelled
    disabled -> enabled

Each move is one guarded UPDATE. Only the caller whose UPDATE changed the row continues.
"""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from tailrace.db import clock
from tailrace.db.query import database_now, query
from tailrace.jobs.destinations import delivery, rate_limit
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Breaker, Bucket, Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay as replay_jobs
from tailrace.jobs.runtime.states import State as JobState
from tailrace.net import ssrf_guard
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.webhook.hosts import QUEUE
from tailrace.subscriptions.channels.webhook.operations import filters
from tailrace.subscriptions.channels.webhook.operations.confirmation import ConfirmEndpoint
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError, FilterError
from tailrace.subscriptions.channels.webhook.operations.owner_mail import EndpointDisabled
from tailrace.subscriptions.channels.webhook.operations.send_test import SendTest
from tailrace.subscriptions.models import Delivery, Endpoint
from tailrace.web.accounts.security.log import record
from tailrace.web.accounts.user_lock import locked
from tailrace.web.event_types import EndpointChanged, SecretRotated

SECRET_OVERLAP = timedelta(hours=24)
"""The time for which an old secret is still used to sign, in addition to the new one."""
MAX_OLD_SECRETS = 5
"""The maximum number of old secrets that are used to sign at the same time."""
MAX_ENDPOINTS = 50
"""The maximum per user."""
FAILING_DAYS = 5
"""An endpoint is disabled after this number of days with failures and no success."""
TESTS_PER_SECOND, TEST_BURST = 0.1, 5
TEST_COST = 5
"""A test counts as this number of requests towards the rate limit."""
CANCEL_BATCH = 5000

State = Endpoint.State


class TooManyEndpoints(EndpointError):
    """The user already has MAX_ENDPOINTS endpoints."""


class TooManyTests(EndpointError):
    """There are too many tests of the endpoint; the next one is possible after `wait` seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"too many tests of this endpoint: try again in {wait:.0f} s")
        self.wait = wait


def lane_of(id: int) -> str:
    return f"endpoint:{id}"


def breaker_of(id: int) -> str:
    return f"{QUEUE}:{lane_of(id)}"


def create(
    user: User,
    url: str,
    description: str = "",
    *,
    event_types: Sequence[str] = (),
    subject_pattern: str = "",
) -> tuple[Endpoint, str]:
    """Create an endpoint; return it and its secret, which cannot be read again. Raise FilterError
    for a URL that is not allowed or an invalid filter, and TooManyEndpoints."""
    secret, url = new_secret(), _valid_url(url)
    event_types = filters.checked_types(event_types)
    subject_pattern = filters.checked_pattern(subject_pattern)
    with locked(user):
        if user.endpoints.count() >= MAX_ENDPOINTS:
            raise TooManyEndpoints(
                f"{user} already has {MAX_ENDPOINTS} endpoints, the maximum: delete one first"
            )
        endpoint = Endpoint.objects.create(
            user=user, url=url, description=description.strip(), secret=encrypt(secret),
            event_types=event_types, subject_pattern=subject_pattern,
        )  # fmt: skip
        _record(endpoint, "created")
        if not endpoint.confirmed:
            enqueue(ConfirmEndpoint, {"endpoint": endpoint.pk}, lane=lane_of(endpoint.pk))
    return endpoint, secret


def change(
    endpoint: Endpoint,
    *,
    url: str | None = None,
    description: str | None = None,
    event_types: Sequence[str] | None = None,
    subject_pattern: str | None = None,
) -> None:
    """Change the values that are given, or raise FilterError. Waiting messages are still sent."""
    values = {
        "url": None if url is None else _valid_url(url),
        "description": None if description is None else description.strip(),
        "event_types": None if event_types is None else filters.checked_types(event_types),
        "subject_pattern": subject_pattern and filters.checked_pattern(subject_pattern),
    }
    values = {name: value for name, value in values.items() if value is not None}
    for name, value in values.items():
        setattr(endpoint, name, value)
    with transaction.atomic():
        endpoint.save(update_fields=list(values))
        _record(endpoint, "changed")


def confirm(endpoint: Endpoint, by: str = "its owner") -> None:
    """Enqueue another challenge to the endpoint's URL. Raise EndpointError if the URL needs no
    confirmation, and TooManyTests."""
    if endpoint.confirmed:
        raise EndpointError(f"endpoint {endpoint.pk} needs no confirmation")
    _take_test(endpoint)
    enqueue(ConfirmEndpoint, {"endpoint": endpoint.pk}, lane=lane_of(endpoint.pk))


def rotate(endpoint: Endpoint) -> str:
    """Set and return a new secret. The old one is still used to sign for SECRET_OVERLAP. Raise
    EndpointError while MAX_OLD_SECRETS old secrets are still used."""
    secret = new_secret()
    with transaction.atomic():
        row = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        now = database_now()
        old = row.old_secrets_at(now)
        if len(old) >= MAX_OLD_SECRETS:
            first_end = min(until for _secret, until in old)
            raise EndpointError(
                f"{len(old)} old secrets of this endpoint are still valid: you can rotate the"
                f" secret again after {first_end:%Y-%m-%d %H:%M} UTC; if a secret is known to"
                " others, delete the endpoint and add it again"
            )
        row.older_secrets = [[old_secret, until.isoformat()] for old_secret, until in old]
        row.old_secret, row.old_secret_until = row.secret, now + SECRET_OVERLAP
        row.secret = encrypt(secret)
        row.save(update_fields=["secret", "old_secret", "old_secret_until", "older_secrets"])
        record(SecretRotated, row.user, endpoint=row.pk, host=_host(row.url))
    endpoint.refresh_from_db()
    return secret


def send_test(endpoint: Endpoint, event_type: str = "") -> int:
    """Enqueue a test delivery, or with an event type the delivery of a sample of it; return the id
    of its job. Raise EndpointError for a type that webhooks do not get or an unconfirmed URL, and
    TooManyTests."""
    if event_type and event_type not in {cls.name for cls in filters.sent_types()}:
        raise EndpointError(f"events of the type {event_type[:100]!r} are not sent to webhooks")
    if not endpoint.confirmed:
        raise EndpointError("the URL is not confirmed: it has to answer a challenge first")
    _take_test(endpoint)
    payload = {"endpoint": endpoint.pk, "message_id": f"msg_test_{uuid.uuid4().hex}"}
    if event_type:
        payload["event_type"] = event_type
    job = enqueue(SendTest, payload, lane=lane_of(endpoint.pk))
    assert job is not None  # noqa: S101 only a job of an event or unique key can exist already
    return job


def _take_test(endpoint: Endpoint) -> None:
    wait = rate_limit.take_token(f"{breaker_of(endpoint.pk)}:test", TESTS_PER_SECOND, TEST_BURST)
    if wait:
        raise TooManyTests(wait)


def test_job(endpoint: Endpoint, id: int) -> Job | None:
    """Return the job of a test of this endpoint, or None."""
    return _tests(endpoint).filter(pk=id).first()


def test_result(endpoint: Endpoint, job: Job) -> Delivery | None:
    """Return the delivery of a test's job, or None if the job has not ended."""
    id = (job.result or {}).get("delivery")
    return deliveries_of(endpoint).filter(pk=id).first() if id else None


def is_tested(endpoint: Endpoint) -> bool:
    """Return whether a test of this endpoint has no result yet."""
    # One query per state, so that each uses the index of its state.
    states = (JobState.PENDING, JobState.RUNNING)
    return any(_tests(endpoint).filter(state=state).exists() for state in states)


def _tests(endpoint: Endpoint) -> QuerySet[Job]:
    return Job.objects.filter(handler=SendTest.name, lane=lane_of(endpoint.pk))


def deliveries_of(endpoint: Endpoint) -> QuerySet[Delivery]:
    """Return the delivery attempts to the endpoint, newest first."""
    return endpoint.deliveries.order_by("-id")


def replay(delivery: Delivery | Job, by: str = "its owner") -> int:
    """Repeat a failed or cancelled delivery with the same webhook-id, or raise EndpointError.
    Return the id of its job."""
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
        raise EndpointError(f"job {id} cannot be repeated: {result.refused[id]}")
    return id


def pause(endpoint: Endpoint, by: str = "its owner") -> None:
    """Pause the endpoint: its deliveries wait from now on."""
    _move(endpoint, {State.ENABLED}, State.PAUSED, f"paused by {by}")


def resume(endpoint: Endpoint, by: str = "its owner") -> None:
    """Resume the endpoint: the waiting deliveries become due at once."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED}, State.ENABLED, "")
        delivery.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)


def enable(endpoint: Endpoint, by: str = "its owner") -> None:
    """Enable a disabled or paused endpoint, and reset its failures and its circuit breaker."""
    with transaction.atomic():
        _move(endpoint, {State.PAUSED, State.DISABLED}, State.ENABLED, "")
        Endpoint.objects.filter(pk=endpoint.pk).update(failing_since=None)
        Breaker.objects.filter(name=breaker_of(endpoint.pk)).delete()
        delivery.release(QUEUE, lane_of(endpoint.pk), by=by, charged=True)
    endpoint.refresh_from_db()


def disable(endpoint: Endpoint, reason: str = "", by: str = "its owner") -> None:
    """Disable the endpoint, and cancel its waiting deliveries."""
    with transaction.atomic():
        reason = reason or f"disabled by {by}"
        _move(endpoint, {State.ENABLED, State.PAUSED}, State.DISABLED, reason)
        cancel_waiting(endpoint.pk, f"{by}, who disabled the endpoint")


def delete(endpoint: Endpoint, by: str = "its owner") -> None:
    """Delete the endpoint and its delivery log, and cancel its waiting deliveries."""
    id = endpoint.pk
    with transaction.atomic():
        _record(endpoint, "deleted")
        endpoint.delete()
        cancel_waiting(id, f"{by}, who deleted the endpoint")
        Breaker.objects.filter(name=breaker_of(id)).delete()
        Bucket.objects.filter(name__in=[breaker_of(id), f"{breaker_of(id)}:test"]).delete()


def disable_failing(id: int, reason: str) -> bool:
    """Disable the endpoint because of its replies, and mail its owner, in the caller's transaction.
    Return False if it is already disabled."""
    rows = Endpoint.objects.filter(pk=id).exclude(state=State.DISABLED)
    changed = rows.update(state=State.DISABLED, reason=reason)
    if changed:
        _record(Endpoint.objects.select_related("user").get(pk=id), State.DISABLED.value)
        cancel_waiting(id, f"Tailrace: the endpoint is disabled, {reason}")
        enqueue(EndpointDisabled, {"endpoint": id, "reason": reason})
    return bool(changed)


_START_FAILING = f"""
UPDATE tailrace_subscriptions_endpoint SET failing_since = coalesce(failing_since, {clock.NOW})
WHERE id = ANY(%(ids)s) AND state <> 'disabled'
RETURNING id, failing_since <= {clock.NOW} - make_interval(days => %(days)s)
"""


def update_health(succeeded: set[int], failing: set[int]) -> set[int]:
    """Record successes and failures; return the ids that have failed for FAILING_DAYS."""
    recovered = Endpoint.objects.filter(pk__in=succeeded, failing_since__isnull=False)
    recovered.update(failing_since=None)  # no statement for an empty set
    ids = sorted(failing)
    rows = query(_START_FAILING, ids=ids, days=FAILING_DAYS) if ids else []
    return {id for id, too_long in rows if too_long}


def cancel_waiting(id: int, by: str) -> None:
    """Cancel the waiting deliveries of the endpoint with this id."""
    waiting = Job.objects.pending().filter(handler=QUEUE, lane=lane_of(id))
    while ids := list(waiting.values_list("id", flat=True)[:CANCEL_BATCH]):
        cancel(ids, by=by)


def _move(endpoint: Endpoint, before: set[State], after: State, reason: str) -> None:
    rows = Endpoint.objects.filter(pk=endpoint.pk)
    with transaction.atomic():
        moved = rows.filter(state__in=before).update(state=after, reason=reason)
        if moved:
            _record(endpoint, after.value)
    if not moved:
        state = rows.values_list("state", flat=True).first() or "deleted"
        raise EndpointError(f"endpoint {endpoint.pk} is {state}, not {', '.join(sorted(before))}")
    endpoint.state, endpoint.reason = after, reason


def _record(endpoint: Endpoint, change: str) -> None:
    """Add the change to the security log, with only the URL's host: the rest may be secret."""
    fields = {"endpoint": endpoint.pk, "host": _host(endpoint.url), "change": change}
    record(EndpointChanged, endpoint.user, **fields)


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _valid_url(url: str) -> str:
    try:
        return str(ssrf_guard.check_url(url.strip()))
    except ssrf_guard.AddressRefused as error:
        raise FilterError("url", str(error)) from None
