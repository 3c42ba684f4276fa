"""Request that metadata is read soon."""

from collections.abc import Iterable
from itertools import islice

from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef, is_name
from tailrace.jobs.enqueue import enqueue_many

MAX_REQUESTED = 100
"""Places that one call requests: what waits for others calls again."""


def key_of(backend: str, ref: PackageRef) -> str:
    """Return the key that the refreshes of a project or package share."""
    return f"{backend}:{ref.project}/{ref.package or PROJECT_SOURCES}"


def request_refreshes(places: Iterable[tuple[str, PackageRef]]) -> None:
    """Enqueue the refresh of these (backend, project or package), unless it is queued already."""
    readable = (
        (backend, ref)
        for backend, ref in sorted(set(places))
        if backend and is_name(ref.project) and is_name(ref.package or PROJECT_SOURCES)
    )
    jobs = [
        {
            "payload": {
                "backend": backend,
                "project": ref.project,
                "package": ref.package or PROJECT_SOURCES,
            },
            "lane": key_of(backend, ref),
            "unique_key": key_of(backend, ref),
        }
        for backend, ref in islice(readable, MAX_REQUESTED)
    ]
    if jobs:
        enqueue_many("builds.update_backend_infos", jobs)
