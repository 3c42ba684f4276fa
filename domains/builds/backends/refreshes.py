"""Enqueue refreshes of stored metadata."""

from collections.abc import Iterable
from itertools import islice

from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef, is_name
from tailrace.jobs.enqueue import enqueue_many

MAX_REQUESTED = 100
"""Refreshes that one call enqueues at most. Callers that need more call again later."""


def key_of(backend: str, ref: PackageRef) -> str:
    """Return the unique key and lane of all refreshes of a project or package."""
    return f"{backend}:{ref.project}/{ref.package or PROJECT_SOURCES}"


def request_refreshes(refs: Iterable[tuple[str, PackageRef]]) -> None:
    """Enqueue a refresh of each (backend, project or package), unless one is queued already.

    Invalid names are left out. At most MAX_REQUESTED refreshes are enqueued.
    """
    readable = (
        (backend, ref)
        for backend, ref in sorted(set(refs))
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
