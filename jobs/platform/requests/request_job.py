"""Create the job that a user requests, once for each Idempotency-Key."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.engine_database import home
from tailrace.db.query import execute
from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import InvalidJob, enqueue_or_merge
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tailrace.jobs.platform.requests import copies, request_keys
from tailrace.jobs.platform.requests.errors import Fault, InvalidRequest
from tailrace.jobs.platform.requests.job_request import JobRequest, checked_payload, handler_for
from tailrace.jobs.runtime import audit

LOCK_SECONDS = 3
"""How long a request waits for another request with its Idempotency-Key or unique key."""


@dataclass(frozen=True, slots=True)
class Requested:
    """The job of a request. It is not new if the request was sent before, or was merged into an
    unstarted job."""

    id: int
    is_new: bool


def request_job(user: User, request: JobRequest, key: str = "") -> Requested:
    """Create the requested job, or return the job that was created with the Idempotency-Key `key`.

    The job, the key and the entry in the audit log are written in one transaction. Raises
    InvalidRequest, NotPermitted, KeyReused, KeyInUse, or Blocked when another transaction locks the
    unique key.
    """
    handler, routing_key = _handler_and_routing_key(user, request)
    with transaction.atomic(using=home()):
        execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        if key:
            job_id = request_keys.take(user.pk, key, request.digest())
            if job_id is not None:
                return Requested(job_id, is_new=False)
        id, is_new = _enqueue(handler, request, routing_key)
        if key:
            request_keys.set_job(user.pk, key, id)
        if is_new and request.copy_of is not None:
            copies.link(user, id, request.copy_of)
        action = audit.REQUESTS[0 if is_new else 1]
        audit.record(user, Job, action, [(id, f"{handler.name} {id}")])
    return Requested(id, is_new)


def _handler_and_routing_key(user: User, request: JobRequest) -> tuple[Handler, str]:
    """Return the handler, and the routing key of the job to run again, or an empty string."""
    if request.copy_of is None:
        return handler_for(user, request.handler), ""
    job = copies.job_to_copy(user, request.copy_of)
    if job.handler != request.handler:
        detail = f"job {job.pk} is a job of {job.handler}, not of {request.handler}"
        raise InvalidRequest([Fault(("handler",), detail)])
    return registry.get(job.handler), job.routing_key


def _enqueue(handler: Handler, request: JobRequest, routing_key: str) -> tuple[int, bool]:
    payload = checked_payload(handler, request)
    try:
        id, is_new = enqueue_or_merge(
            handler.name,
            payload,
            routing_key=routing_key,
            due_at=request.due_at,
            priority=request.priority,
            unique_key=request.unique_key,
            lane=request.lane,
        )
    except InvalidJob as error:  # the payload is valid, but cannot be stored
        raise InvalidRequest([Fault(("payload",), str(error))]) from None
    if id is None:
        raise AssertionError("a job without an event is always created or merged")
    return id, is_new
