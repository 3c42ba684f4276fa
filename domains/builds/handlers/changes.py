"""Record the changes of metadata that events report, in the events' transaction."""

from collections.abc import Sequence

from django.conf import settings

from tailrace.db import clock
from tailrace.domains.builds.audience.references import package_of
from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.event_types.package import (
    Commit,
    CreatePackage,
    CreateProject,
    UndeletePackage,
    UndeleteProject,
    UpdatePackage,
    UpdateProject,
)
from tailrace.domains.builds.event_types.people import RelationshipCreate, RelationshipDelete
from tailrace.domains.builds.models import UnreadChange
from tailrace.events.publish import Recorded
from tailrace.events.publishing.signals import on_published

METADATA_CHANGES = (
    CreateProject,
    UpdateProject,
    UndeleteProject,
    CreatePackage,
    UpdatePackage,
    UndeletePackage,
    RelationshipCreate,
    RelationshipDelete,
)
"""Types of events that report a change of the `_meta` of their project or package."""


def changed_by(event: Recorded) -> PackageRef | None:
    """Return the project or package whose metadata the event reports as changed, or None."""
    ref = package_of(event.raw_payload)
    is_project_commit = event.event_type is Commit and ref.package == PROJECT_SOURCES
    return ref.sources if is_project_commit or event.event_type in METADATA_CHANGES else None


@on_published(*METADATA_CHANGES, Commit)
def record_changes(events: Sequence[Recorded]) -> None:
    """Record the projects and packages whose metadata has to be read again. Until then it is not
    used to choose readers and recipients: see `visibility` and `awaited`."""
    changes = []
    for event in events:
        ref, backend = changed_by(event), reporter_of(event)
        if ref is not None and ref.is_valid and backend in settings.OBS_BACKENDS:
            names = {"backend": backend, "project": ref.project, "package": ref.package}
            changes.append(UnreadChange(**names, event_id=event.id, recorded_at=clock.now()))
    UnreadChange.objects.bulk_create(changes)
