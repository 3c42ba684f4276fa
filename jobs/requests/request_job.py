"""Create the job that a user requests, once for each Idempotency-Key."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import execute
from tailrace.jobs import registry
from tailrace.jobs.enqueue import InvalidJob, enqueue_or_merge
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tailrace.jobs.operations import audit
from tailrace.jobs.requests import copies, request_keys
from tailrace.jobs.requests.errors import Fault, InvalidRequest
from tailrace.jobs.requests.job_request import JobRequest, checked_payload, handler_for

LOCK_SECONDS = 3
"""How long a request waits for another with its key, or for the one that holds its unique key."""


@dataclass(frozen=True, slots=True)
class Requested:
    """The job of a request; not new if it was sent before, or merged into an unstarted job."""

    id: int
    is_new: bool


def request_job(user: User, request: JobRequest, key: str = "") -> Requested:
    """Create the job, or return the one that the user's Idempotency-Key `key` stands for.

    Job, key and the entry in the admin's log are one transaction. Raises InvalidRequest,
    NotPermitted, KeyReused, KeyInUse, or Blocked when another transaction holds the unique key.
    """
    handler, routing_key = _wanted(user, request)
    with transaction.atomic():
        execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        if key:
            known = request_keys.take(user.pk, key, request.digest())
            if known is not None:
                return Requested(known, is_new=False)
        id, is_new = _enqueue(handler, request, routing_key)
        if key:
            request_keys.set_job(user.pk, key, id)
        if is_new and request.copy_of is not None:
            copies.link(user, id, request.copy_of)
        action = audit.REQUESTS[0 if is_new else 1]
        audit.record(user, Job, action, [(id, f"{handler.name} {id}")])
    return Requested(id, is_new)


def _wanted(user: User, request: JobRequest) -> tuple[Handler, str]:
    """Return the handler, and the routing key of the job that is run again."""
    if request.copy_of is None:
        return handler_for(user, request.handler), ""
    job = copies.job_to_copy(user, request.copy_of)
    if job.handler != request.handler:
        detail = f"job {job.pk} is of {job.handler}, not of {request.handler}"
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
    except InvalidJob as error:  # it validates, and cannot be stored
        raise InvalidRequest([Fault(("payload",), str(error))]) from None
    if id is None:
        raise AssertionError("only the job of an event may be left out")
    return id, is_new
