"""builds.project_log: what happened in a project, as lines that people can read."""

from collections.abc import Sequence
from typing import Any

from domains.builds import projects
from domains.builds.event_types import BuildsEvent
from domains.builds.models import ProjectLogEntry
from domains.builds.origin import backend_of
from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Backoff, Handler

USER_KEYS = ("sender", "user", "who", "author", "commenter")
REQUEST_KEYS = ("requestid", "request_number", "number")
ELSEWHERE = {"project", "package", *USER_KEYS, *REQUEST_KEYS}
"""Keys that the entry has columns for."""
VALUE_LIMIT = 250
KEYS_LIMIT = 12


class ProjectLog(Handler):
    """Append the event to its project's log, one entry per event.

    Also hears of projects that come and go, for a deleted project has no log to append to.
    """

    name = "builds.project_log"
    on = [BuildsEvent]
    batch_size = 100
    max_attempts = 4
    backoff = Backoff(60, 300, 900)

    def wants(self, event: Recorded) -> bool:
        return bool(getattr(event.event_type, "project_log", False)) or _tells(event)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        known = [(job, job.event) for job in jobs if job.event and job.event.payload.get("project")]
        events = [event for _job, event in known]
        projects.mark([projects.told_by(event) for event in events if _tells(event)])
        too_late = projects.deleted_before(events)
        ProjectLogEntry.objects.bulk_create(
            [entry(event) for event in events if event.id not in too_late and _is_logged(event)],
            ignore_conflicts=True,
        )
        for job in jobs:
            _settle(job, too_late)


def _settle(job: ClaimedJob, too_late: set[int]) -> None:
    if job.event is None:
        job.fail("its event is gone")
    elif not job.event.payload.get("project"):
        job.skip("the event names no project")
    elif job.event.id in too_late:
        job.skip(f"the project {job.event.payload['project']} had been deleted")


def _tells(event: Recorded) -> bool:
    return event.event_type in projects.TELLING


def _is_logged(event: Recorded) -> bool:
    return bool(getattr(event.event_type, "project_log", False))


def entry(event: Recorded) -> ProjectLogEntry:
    """Return the event as an entry, unsaved. What it says at length stays with the event."""
    payload = event.payload
    return ProjectLogEntry(
        event_id=event.id,
        backend=backend_of(event),
        project=payload["project"],
        package=payload.get("package") or "",
        user=_first(payload, USER_KEYS),
        request=_first(payload, REQUEST_KEYS),
        type=event.type,
        occurred_at=event.occurred_at,
        details=details(payload),
    )


def details(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what the entry has no column for: plain values alone, cut short, a dozen at most."""
    rest = {
        key: value[: VALUE_LIMIT - 1] + "…"
        if isinstance(value, str) and len(value) > VALUE_LIMIT
        else value
        for key, value in payload.items()
        if key not in ELSEWHERE and isinstance(value, str | int | float) and value != ""
    }
    return dict(list(rest.items())[:KEYS_LIMIT])


def _first(payload: dict[str, Any], keys: Sequence[str]) -> str:
    return next((str(payload[key]) for key in keys if payload.get(key)), "")
