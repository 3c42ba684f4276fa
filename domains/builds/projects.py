"""projects: which of them exist, by the last event that said so."""

from collections.abc import Iterable, Sequence

from django.db import connection

from domains.builds.event_types import CreateProject, DeleteProject, UndeleteProject
from domains.builds.models import Project
from domains.builds.origin import backend_of
from events.publish import Recorded

TELLING = (CreateProject, DeleteProject, UndeleteProject)
"""Event types that say whether a project exists."""

_MARK = """
INSERT INTO builds_project AS p (backend, name, title, exists, told_by)
SELECT DISTINCT ON (backend, name) backend, name, '', exists, told_by
FROM unnest(%s::text[], %s::text[], %s::bool[], %s::bigint[]) AS t (backend, name, exists, told_by)
ORDER BY backend, name, told_by DESC
ON CONFLICT (backend, name) DO UPDATE SET exists = excluded.exists, told_by = excluded.told_by
WHERE p.told_by < excluded.told_by
"""


def mark(told: Sequence[tuple[str, str, bool, int]]) -> None:
    """Record (backend, project, exists, id of the event that says so); the latest event wins."""
    if not told:
        return
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [list(column) for column in zip(*told, strict=True)])


def told_by(event: Recorded) -> tuple[str, str, bool, int]:
    """Return what an event of one of the TELLING types says, as `mark` takes it."""
    exists = not issubclass(event.event_type or CreateProject, DeleteProject)
    return backend_of(event), event.payload["project"], exists, event.id


def deleted_before(events: Iterable[Recorded]) -> set[int]:
    """Return the ids of those events whose project had been deleted when they happened.

    What happened to a project before its deletion is still of interest: ids rise with the log.
    """
    where = {event.id: (backend_of(event), event.payload["project"]) for event in events}
    gone = {
        (project.backend, project.name): project.told_by
        for project in Project.objects.filter(
            name__in={name for _backend, name in where.values()}, exists=False
        )
    }
    return {id for id, place in where.items() if gone.get(place, id) < id}
