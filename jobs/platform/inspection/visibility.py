"""Mask the fields of events and jobs that a user of the admin may not see.

Of an event that the user may not read, and of its jobs, only the ids, types, queues, states and
times stay, which operators need. Errors, progress notes and tracebacks may quote a payload, so
they need the permission to see payloads. Rows are masked in memory and must never be saved.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tailrace.events.models import Event
from tailrace.events.privacy.visibility import VIEW_HIDDEN, admits, hidden_from, may_read
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.jobs.destinations.hidden import HIDDEN as HIDDEN_EVENT
from tailrace.jobs.destinations.hidden import NOT_KNOWN
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance.ticking.rescue import LOST, PROCESS_DIED
from tailrace.jobs.engine.waking.dependents import NOT_NEEDED, WAITED
from tailrace.jobs.flows.operations import OVERDUE
from tailrace.jobs.models import Attempt, Job

VIEW_EVENT_PAYLOAD = "tailrace_events.view_payload"
VIEW_JOB = "tailrace_jobs.view_job"
VIEW_FLOW = "tailrace_jobs.view_flow"
VIEW_JOB_PAYLOAD = "tailrace_jobs.view_job_payload"
CHANGE_JOB_PAYLOAD = "tailrace_jobs.change_job_payload"
HIDDEN = "hidden"
_NOT_SHOWN = f"not shown: needs the permission {VIEW_JOB_PAYLOAD}"

_DIED = PROCESS_DIED.format(how=r"[\w ()]+")
_ENGINE_ERROR = re.compile(
    rf"{re.escape(LOST)}|{_DIED}|merged into job \d+|no handler is called [\w.']+"
    rf"|cancelled by [\w.@+-]+( with its flow)?|{WAITED}\d+, which was \w+|{NOT_NEEDED}|{OVERDUE}"
    rf"|{HIDDEN_EVENT}|{NOT_KNOWN}|{HIDDEN}|{re.escape(_NOT_SHOWN)}"
)
"""Errors that the engine writes; they quote no payload."""


def user_of(request: HttpRequest) -> User:
    return cast(User, request.user)


def require(request: HttpRequest, *permissions: str) -> None:
    """Raise PermissionDenied unless the user has all of these permissions."""
    for permission in permissions:
        if not request.user.has_perm(permission):
            raise PermissionDenied(f"you need the permission {permission}")


def mask_events(user: User, events: Sequence[Event]) -> set[int]:
    """Mask the events that the user may not read; return their ids.

    `problem` may quote the payload, so it is masked unless the user may see payloads.
    """
    hidden = _hidden_events(user, events)
    sees_payload = user.has_perm(VIEW_EVENT_PAYLOAD)
    for event in events:
        if event.pk in hidden:
            event.subject = event.source_id = HIDDEN
            event.actor = event.trace_parent = ""
            event.payload = {}
            event.cause_id = None
        if event.problem and (event.pk in hidden or not sees_payload):
            event.problem = f"not shown: needs the permission {VIEW_EVENT_PAYLOAD}"
            if event.pk in hidden:
                event.problem += f" and {VIEW_HIDDEN}"
    return hidden


def _hidden_events(user: User, events: Sequence[Event]) -> set[int]:
    if not events or user.has_perm(VIEW_HIDDEN):
        return set()
    loaded = [event for event in events if "payload" not in event.get_deferred_fields()]
    if len(loaded) < len(events):
        return hidden_from(user, (event.pk for event in events))
    recorded = [Recorded.from_model(event) for event in loaded]
    return {event.id for event in recorded} - may_read(user, recorded)


def mask_jobs(user: User, jobs: Sequence[Job]) -> set[int]:
    """Mask the fields of these jobs that the user may not see; return the ids of hidden jobs."""
    hidden = hidden_jobs(user, jobs)
    sees_payload = user.has_perm(VIEW_JOB_PAYLOAD)
    for job in jobs:
        if job.pk in hidden:
            job.payload, job.result = {}, None
            job.lane = job.routing_key = HIDDEN
            job.flow_name = HIDDEN if job.flow_name else None
            job.unique_key = HIDDEN if job.unique_key else None
        if job.pk in hidden or not sees_payload:
            job.error = masked_error(job.error)
            job.progress_note = ""
    return hidden


def mask_attempts(user: User, attempts: Iterable[Attempt], hidden: bool = False) -> None:
    """Mask messages and tracebacks unless the user may see payloads; error classes stay."""
    if user.has_perm(VIEW_JOB_PAYLOAD) and not hidden:
        return
    for attempt in attempts:
        attempt.message, attempt.traceback = masked_error(attempt.message), ""


def masked_error(text: str) -> str:
    """Return the error if the engine wrote it, else a text that it is not shown."""
    return text if not text or _ENGINE_ERROR.fullmatch(text) else _NOT_SHOWN


def hidden_ids(user: User, ids: Iterable[int]) -> set[int]:
    """Return the ids of the jobs among `ids` that the user may not read."""
    if user.has_perm(VIEW_HIDDEN):
        return set()
    jobs = Job.objects.filter(pk__in=list(ids)).only("pk", "handler", "event_id")
    return hidden_jobs(user, list(jobs))


def hidden_jobs(user: User, jobs: Sequence[Job]) -> set[int]:
    """Return the ids of the jobs that the user may not read: by their event or their payload."""
    if not jobs or user.has_perm(VIEW_HIDDEN):
        return set()
    hidden_events = hidden_from(user, (job.event_id for job in jobs))
    restricted = _readers_without_event([job for job in jobs if job.event_id is None])
    return {
        job.pk
        for job in jobs
        if job.event_id in hidden_events or not admits(restricted.get(job.pk), user)
    }


def _readers_without_event(jobs: Sequence[Job]) -> dict[int, Readers | None]:
    by_handler: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_handler[job.handler].append(job)
    readers: dict[int, Readers | None] = {}
    for name, group in by_handler.items():
        handler = registry.find(name)
        if handler is not None and handler.restricts_payloads():
            rows = Job.objects.filter(pk__in=[job.pk for job in group])
            readers |= handler.payload_readers(dict(rows.values_list("pk", "payload")))
    return readers
