"""Events whose receivers depend on metadata that was not read yet, or that changed since."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.conf import settings

from tailrace.db.query import query
from tailrace.domains.builds.backends.names import PackageRef, is_name
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.domains.builds.receivers import MAX_DEVEL_STEPS
from tailrace.domains.builds.references import metadata_of_receivers
from tailrace.events.publish import Recorded

# For each package: the places on which its holders depend (itself, its development packages, and
# the projects of all of these) that are not up to date.
_UNREAD = """
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
    """Return the ids of those events that wait for metadata, and request it."""
    refs_of = {event.id: (backend_of(event), metadata_of_receivers(event)) for event in events}
    refs_at: dict[str, set[PackageRef]] = defaultdict(set)
    for backend, refs in refs_of.values():
        refs_at[backend] |= {ref for ref in refs if _is_readable(backend, ref)}
    unread = {
        (backend, ref): places
        for backend, refs in refs_at.items()
        for ref, places in _unread(backend, refs).items()
    }
    request_refreshes(
        (backend, place) for (backend, _ref), places in unread.items() for place in places
    )
    return {
        id
        for id, (backend, refs) in refs_of.items()
        if any((backend, ref) in unread for ref in refs)
    }


def _is_readable(backend: str, ref: PackageRef) -> bool:
    return (
        backend in settings.OBS_BACKENDS
        and is_name(ref.project)
        and (not ref.package or is_name(ref.package))
    )


def _unread(backend: str, refs: Collection[PackageRef]) -> dict[PackageRef, set[PackageRef]]:
    """Return, by package, what has to be read before it is known who holds its roles."""
    unread: dict[PackageRef, set[PackageRef]] = defaultdict(set)
    if refs:
        projects, packages = (list(column) for column in zip(*refs, strict=True))
        rows = query(
            _UNREAD,
            backend=backend,
            projects=projects,
            packages=packages,
            max_steps=MAX_DEVEL_STEPS,
        )
        for of_project, of_package, project, package in rows:
            unread[PackageRef(of_project, of_package)].add(PackageRef(project, package))
    return unread
