"""Record the changes of metadata that events report, in the events' transaction."""

from collections.abc import Sequence

from django.conf import settings

from tailrace.db import clock
from tailrace.domains.builds.audience.references import package_of
from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef, is_name
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
    if event.event_type in METADATA_CHANGES or (
        event.event_type is Commit and ref.package == PROJECT_SOURCES
    ):
        return ref.sources
    return None


@on_published(*METADATA_CHANGES, Commit)
def record_changes(events: Sequence[Recorded]) -> None:
    """Record the projects and packages whose metadata has to be read again.

    Until it is read, the old metadata is not used to choose readers and recipients: see
    `visibility` and `awaited`.
    """
    changes = []
    for event in events:
        ref, backend = changed_by(event), reporter_of(event)
        if ref is None or backend not in settings.OBS_BACKENDS or not is_name(ref.project):
            continue
        if ref.package and not is_name(ref.package):
            continue
        changes.append(
            UnreadChange(
                backend=backend,
                project=ref.project,
                package=ref.package,
                event_id=event.id,
                recorded_at=clock.now(),
            )
        )
    UnreadChange.objects.bulk_create(changes)
