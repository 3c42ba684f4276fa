"""Find events whose receivers depend on metadata that was not read, or has changed since."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.conf import settings

from tailrace.db.query import query
from tailrace.domains.builds.audience.receivers import MAX_DEVEL_STEPS
from tailrace.domains.builds.audience.references import metadata_of_receivers
from tailrace.domains.builds.backends.names import PackageRef, is_name
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.events.publish import Recorded

# The holders of a package's roles depend on the package, its development packages, and the projects
# of all of these packages. For each package: the packages and projects among these whose stored
# metadata is not up to date.
_UNREAD_METADATA = """
WITH RECURSIVE chain AS (
  SELECT project AS of_project, package AS of_package, project, package, 0 AS steps
  FROM unnest(%(projects)s::text[], %(packages)s::text[]) AS t (project, package)
  UNION
  SELECT of_project, of_package, p.devel_project, p.devel_package, steps + 1
  FROM chain JOIN tailrace_builds_package p ON p.backend = %(backend)s AND p.project = chain.project
    AND p.name = chain.package AND p.devel_project <> '' AND p.gone_at IS NULL
  WHERE steps < %(max_steps)s
), needed AS (
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
    """Return the ids of the events whose receivers depend on unread metadata.

    Enqueue refreshes of this metadata.
    """
    refs_by_event = {
        event.id: (backend_of(event), metadata_of_receivers(event)) for event in events
    }
    refs_by_backend: dict[str, set[PackageRef]] = defaultdict(set)
    for backend, refs in refs_by_event.values():
        refs_by_backend[backend] |= {ref for ref in refs if _is_readable(backend, ref)}
    unread = {
        (backend, ref): unread_refs
        for backend, refs in refs_by_backend.items()
        for ref, unread_refs in _unread_metadata(backend, refs).items()
    }
    request_refreshes(
        (backend, unread_ref)
        for (backend, _ref), unread_refs in unread.items()
        for unread_ref in unread_refs
    )
    return {
        id
        for id, (backend, refs) in refs_by_event.items()
        if any((backend, ref) in unread for ref in refs)
    }


def _is_readable(backend: str, ref: PackageRef) -> bool:
    return (
        backend in settings.OBS_BACKENDS
        and is_name(ref.project)
        and (not ref.package or is_name(ref.package))
    )


def _unread_metadata(
    backend: str, refs: Collection[PackageRef]
) -> dict[PackageRef, set[PackageRef]]:
    """Return, by package, the projects and packages whose metadata has to be read to know the
    holders of the package's roles. Packages with up-to-date metadata are left out."""
    unread: dict[PackageRef, set[PackageRef]] = defaultdict(set)
    if refs:
        projects, packages = (list(column) for column in zip(*refs, strict=True))
        rows = query(
            _UNREAD_METADATA,
            backend=backend,
            projects=projects,
            packages=packages,
            max_steps=MAX_DEVEL_STEPS,
        )
        for of_project, of_package, project, package in rows:
            unread[PackageRef(of_project, of_package)].add(PackageRef(project, package))
    return unread
