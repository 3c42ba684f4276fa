"""Enqueue refreshes of stored metadata."""

from collections.abc import Iterable
from itertools import islice

from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef
from tailrace.jobs.enqueue import enqueue_many

MAX_REQUESTED = 100
"""Refreshes that one call enqueues at most. Callers that need more call again later."""


def request_refreshes(refs: Iterable[tuple[str, PackageRef]]) -> None:
    """Enqueue a refresh of each (backend, project or package), unless one is queued already or the
    name is invalid; at most MAX_REQUESTED."""
    payloads = (
        {"backend": backend, "project": ref.project, "package": ref.package or PROJECT_SOURCES}
        for backend, ref in sorted(set(refs))
        if backend and ref.is_valid
    )
    jobs = []
    for payload in islice(payloads, MAX_REQUESTED):
        key = "{backend}:{project}/{package}".format(**payload)
        jobs.append({"payload": payload, "lane": key, "unique_key": key})
    if jobs:
        enqueue_many("builds.update_backend_infos", jobs)
