"""Find events whose receivers depend on metadata that was not read, or has changed since."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.conf import settings

from tailrace.db.query import query
from tailrace.domains.builds.audience.receivers import DEVEL_CHAIN
from tailrace.domains.builds.audience.references import metadata_of_receivers
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.events.publish import Recorded

# The holders of a package's roles depend on the package, its development packages, and the projects
# of all of these packages. For each package: the packages and projects among these whose stored
# metadata is not up to date.
_UNREAD_METADATA = f"""
{DEVEL_CHAIN}, needed AS (
  SELECT of_project, of_package, project, package FROM chain
  UNION SELECT of_project, of_package, project, '' FROM chain
)
SELECT of_project, of_package, project, package FROM needed
WHERE EXISTS (
  SELECT FROM tailrace_builds_unreadchange u WHERE u.backend = %(backend)s
    AND u.project = needed.project AND u.package = needed.package
) OR CASE WHEN package = '' THEN NOT EXISTS (
  SELECT FROM tailrace_builds_project p WHERE p.backend = %(backend)s AND p.name = needed.project
    AND (p.refreshed_at IS NOT NULL OR NOT p.exists)
) ELSE NOT EXISTS (
  SELECT FROM tailrace_builds_package p WHERE p.backend = %(backend)s AND p.project = needed.project
    AND p.name = needed.package AND (p.refreshed_at IS NOT NULL OR p.gone_at IS NOT NULL)
) END
"""


def awaiting_metadata(events: Sequence[Recorded]) -> set[int]:
    """Return the ids of the events whose receivers depend on unread metadata; enqueue its reads."""
    refs_by_event = {
        event.id: {(backend_of(event), ref) for ref in metadata_of_receivers(event)}
        for event in events
    }
    refs_by_backend: dict[str, set[PackageRef]] = defaultdict(set)
    for backend, ref in set().union(*refs_by_event.values()):
        if backend in settings.OBS_BACKENDS and ref.is_valid:
            refs_by_backend[backend].add(ref)
    unread = {
        (backend, ref): unread_refs
        for backend, refs in refs_by_backend.items()
        for ref, unread_refs in _unread_metadata(backend, refs).items()
    }
    request_refreshes((backend, ref) for (backend, _), refs in unread.items() for ref in refs)
    return {id for id, refs in refs_by_event.items() if not refs.isdisjoint(unread)}


def _unread_metadata(
    backend: str, refs: Collection[PackageRef]
) -> dict[PackageRef, set[PackageRef]]:
    """Return, by package, the projects and packages whose metadata has to be read to know the
    holders of the package's roles. Packages with up-to-date metadata are left out."""
    unread: dict[PackageRef, set[PackageRef]] = defaultdict(set)
    if refs:
        projects, packages = (list(column) for column in zip(*refs, strict=True))
        rows = query(_UNREAD_METADATA, backend=backend, projects=projects, packages=packages)
        for of_project, of_package, project, package in rows:
            unread[PackageRef(of_project, of_package)].add(PackageRef(project, package))
    return unread
