"""Record which projects exist, according to the latest event about each project."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tailrace.db.query import execute
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.models import Project
from tailrace.events.publish import Recorded


class ProjectState(NamedTuple):
    """Whether a project exists, according to one event."""

    backend: str
    project: str
    exists: bool
    event_id: int


_UPSERT = """
INSERT INTO tailrace_builds_project AS p (backend, name, title, exists, told_by)
SELECT DISTINCT ON (backend, name) backend, name, '', exists, told_by
FROM unnest(%(backends)s::text[], %(names)s::text[], %(exists)s::bool[], %(event_ids)s::bigint[])
  AS t (backend, name, exists, told_by)
ORDER BY backend, name, told_by DESC
ON CONFLICT (backend, name) DO UPDATE SET exists = excluded.exists, told_by = excluded.told_by
WHERE p.told_by < excluded.told_by
"""


def record_states(states: Sequence[ProjectState]) -> None:
    """Record whether the projects exist. For each project, the state of the latest event wins."""
    if states:
        backends, names, exists, event_ids = (list(column) for column in zip(*states, strict=True))
        execute(_UPSERT, backends=backends, names=names, exists=exists, event_ids=event_ids)


def in_deleted_projects(events: Iterable[Recorded]) -> set[int]:
    """Return the ids of the events after the deletion of their project. Ids rise in the order of
    the log, so an event with a lower id than the deletion happened before it."""
    keys = {event.id: (backend_of(event), event.raw_payload["project"]) for event in events}
    names = {name for _backend, name in keys.values()}
    deleted = Project.objects.filter(name__in=names, exists=False)
    deleted_by = {(project.backend, project.name): project.last_event for project in deleted}
    return {id for id, key in keys.items() if deleted_by.get(key, id) < id}
