"""Write events to the logs of their projects."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from tailrace.domains.builds.backends import projects
from tailrace.domains.builds.backends.origin import backend_of, reporter_of
from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.domains.builds.event_types.package import (
    CreateProject,
    DeleteProject,
    UndeleteProject,
)
from tailrace.domains.builds.models import ProjectLogEntry
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler

USER_KEYS = BuildsEvent.actor_keys
REQUEST_KEYS = ("requestid", "request_number", "number")
COLUMN_KEYS = {"project", "package", *USER_KEYS, *REQUEST_KEYS}
"""Payload keys whose values are stored in columns of the entry."""
MAX_VALUE_LENGTH = 250
MAX_KEYS = 12


class ProjectLog(Handler):
    """Append the event to its project's log, one entry per event. Also record the creation and
    deletion of projects: events of deleted projects are not logged."""

    name = "builds.project_log"
    quiet = True
    on = [BuildsEvent]
    batch_size = 100
    max_attempts = 4
    backoff = Backoff(60, 300, 900)

    def wants(self, event: Recorded) -> bool:
        return _is_logged(event) or _changes_existence(event)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        all_events = (job.require_event() for job in jobs)
        events = [event for event in all_events if event.raw_payload.get("project")]
        states = [project_state(event) for event in events if _changes_existence(event)]
        projects.record_states(states)
        after_deletion = projects.in_deleted_projects(events)
        logged = (each for each in events if each.id not in after_deletion and _is_logged(each))
        ProjectLogEntry.objects.bulk_create(map(entry, logged), ignore_conflicts=True)
        for job in jobs:
            _set_outcome(job, after_deletion)


def _set_outcome(job: ClaimedJob, after_deletion: set[int]) -> None:
    event = job.require_event()
    if not event.raw_payload.get("project"):
        job.skip("the event names no project")
    elif event.id in after_deletion:
        job.skip(f"the project {event.raw_payload['project']} was deleted before the event")


def _is_logged(event: Recorded) -> bool:
    return bool(getattr(event.event_type, "project_log", False))


def _changes_existence(event: Recorded) -> bool:
    """Return whether the event, from the project's own backend, creates or deletes its project."""
    types = (CreateProject, DeleteProject, UndeleteProject)
    return event.event_type in types and bool(reporter_of(event))


def project_state(event: Recorded) -> projects.ProjectState:
    """Return the state of the project after an event that creates or deletes it."""
    exists = event.event_type is not DeleteProject
    project = event.raw_payload["project"]
    return projects.ProjectState(reporter_of(event), project, exists, event.id)


def entry(event: Recorded) -> ProjectLogEntry:
    """Return an unsaved entry for the event. Long values are shortened; the event keeps them."""
    payload = event.raw_payload
    return ProjectLogEntry(
        event_id=event.id,
        backend=backend_of(event),
        project=payload["project"],
        package=payload.get("package") or "",
        user=event.actor or _first_value(payload, USER_KEYS),
        request=_first_value(payload, REQUEST_KEYS),
        type=event.type,
        occurred_at=event.occurred_at,
        details=details(payload),
    )


def details(payload: dict[str, Any]) -> dict[str, Any]:
    """Return up to MAX_KEYS texts and numbers of the payload that have no column, shortened."""
    values = (
        (key, _cut(value) if isinstance(value, str) else value)
        for key, value in payload.items()
        if key not in COLUMN_KEYS and isinstance(value, str | int | float) and value != ""
    )
    return dict(islice(values, MAX_KEYS))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"


def _first_value(payload: dict[str, Any], keys: Sequence[str]) -> str:
    return next((str(payload[key]) for key in keys if payload.get(key)), "")
