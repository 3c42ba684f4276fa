"""Check a user's request for a job: the handler, the payload and the options."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from pydantic import BaseModel, ValidationError

from tailrace.db.query import database_now
from tailrace.environment.field_errors import field_errors
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.new_job import KEY_LIMIT
from tailrace.jobs.handler import LOWEST_PRIORITY, Handler
from tailrace.jobs.platform.requests.errors import Fault, InvalidRequest, NotPermitted
from tailrace.jobs.runtime import payloads

EARLIEST = timedelta(hours=-1)
LATEST = timedelta(days=366)
"""The earliest and the latest due time of a requested job, from now."""
MAX_FAULTS = 100
"""The maximum number of reported errors of one payload."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job that a user requests. Values that are None or empty are the handler's defaults."""

    handler: str
    payload: Mapping[str, Any] | None = None
    due_at: datetime | None = None
    priority: int | None = None
    unique_key: str | None = None
    lane: str = ""
    copy_of: int | None = None
    """The id of a job to run again; see `copies`."""

    def digest(self) -> str:
        """Return a hash of the request, to recognise the same request."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def all_handlers() -> list[Handler]:
    return list(registry.all_handlers().values())


def permitted_handlers(user: User) -> list[Handler]:
    """Return the handlers whose jobs the user may request, by name."""
    return [handler for handler in all_handlers() if _permits(handler, user)]


def _permits(handler: Handler, user: User) -> bool:
    permission = handler.request_permission
    return permission is not None and user.has_perm(permission)


def handler_for(user: User, name: str) -> Handler:
    """Return the handler called `name`, or raise InvalidRequest or NotPermitted."""
    handler = registry.find(name)
    if handler is None:
        known = [handler.name for handler in permitted_handlers(user)]
        detail = f"no handler is called {name!r}{did_you_mean(name, known)}"
        raise InvalidRequest([Fault(("handler",), detail)])
    if handler.request_permission is None:
        detail = f"jobs of {name} cannot be requested: its class has no request_permission"
        raise NotPermitted(detail)
    if not _permits(handler, user):
        permission = handler.request_permission
        detail = f"{user.get_username()} needs the permission {permission} for jobs of {name}"
        raise NotPermitted(detail, permission)
    return handler


def checked_payload(handler: Handler, request: JobRequest) -> BaseModel | None:
    """Return the payload as the handler's model; raises InvalidRequest with all errors."""
    faults = _faults_of_options(request)
    payload = None
    try:
        if handler.Payload is not None:
            payload = payloads.read(handler.Payload, request.payload or {})
        elif request.payload:
            faults.append(Fault(("payload",), f"{handler.name} takes no payload"))
    except ValidationError as error:
        fields = field_errors(error, request.payload or {}, handler.Payload)[:MAX_FAULTS]
        faults += [Fault(("payload", *field.path), field.detail) for field in fields]
    if faults:
        raise InvalidRequest(faults)
    return payload


def _faults_of_options(request: JobRequest) -> list[Fault]:
    faults = []
    for name in ("unique_key", "lane"):
        if (length := len(getattr(request, name) or "")) > KEY_LIMIT:
            detail = f"it has {length} characters, but may have at most {KEY_LIMIT}"
            faults.append(Fault((name,), detail))
    if request.unique_key == "":
        faults.append(Fault(("unique_key",), "it must not be empty; leave it out instead"))
    if request.priority is not None and not 0 <= request.priority <= LOWEST_PRIORITY:
        detail = f"{request.priority} is not between 0 (first) and {LOWEST_PRIORITY}"
        faults.append(Fault(("priority",), detail))
    if request.due_at is not None and (detail := wrong_time(request.due_at)):
        faults.append(Fault(("due_at",), detail))
    return faults


def wrong_time(due_at: datetime) -> str:
    """Return why a job cannot be due at this time; empty if it can."""
    if due_at.tzinfo is None:
        return f"{due_at.isoformat()} has no time zone; write it as 2026-10-01T12:00:00Z"
    now = database_now()
    if due_at < now + EARLIEST:
        return f"{due_at.isoformat()} is in the past; for a job that is due now, leave it out"
    if due_at > now + LATEST:
        return f"{due_at.isoformat()} is more than {LATEST.days} days in the future"
    return ""
