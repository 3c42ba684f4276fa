"""Changes of metadata that events report: they are recorded with the event, until they are read."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.dispatch import receiver

from tailrace.db import clock
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
from tailrace.domains.builds.references import package_of
from tailrace.events.publish import Recorded
from tailrace.events.signals import published

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
"""Events after which the `_meta` of their project or package may be another one."""


def changed_by(event: Recorded) -> PackageRef | None:
    """Return the project or package whose metadata the event reports as changed, or None."""
    ref = package_of(event.raw_payload)
    if event.event_type in METADATA_CHANGES or (
        event.event_type is Commit and ref.package == PROJECT_SOURCES
    ):
        return ref.sources
    return None


@receiver(published, dispatch_uid="builds.changes")
def record_changes(events: Sequence[Recorded], **kwargs: Any) -> None:
    """Record what has to be read again, in the transaction of the events.

    Until then nobody is notified by what was known before: see `visibility` and `awaited`.
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
