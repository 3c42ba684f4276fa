"""Find the commit from which a package was built."""

import re
from functools import lru_cache

from django.conf import settings

from tailrace.domains.builds.backends.client import BackendClient, NotFound
from tailrace.domains.builds.backends.metadata import path_of
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.destinations.scm.links import is_commit

SECONDS = 10.0
MAX_BYTES = 64 * 1024


def built_commit(backend: str, package: PackageRef, rev: str) -> str:
    """Return the commit of the package's sources at a revision (or srcmd5): the line `commit: …` of
    `_scmsync.obsinfo`, which obs-scm-bridge writes; empty if there is none. Raises BackendError or
    InvalidName."""
    return _read_commit(backend, settings.OBS_BACKENDS[backend], *package.sources, rev)


@lru_cache(2000)  # a package is built in many repositories; the sources of a revision never change
def _read_commit(backend: str, url: str, project: str, package: str, rev: str) -> str:
    path = path_of("source", project, package, "_scmsync.obsinfo")
    try:
        with BackendClient(backend, url, seconds=SECONDS, max_bytes=MAX_BYTES) as client:
            body = client.get(path, {"rev": rev})
    except NotFound:
        return ""
    match = re.search(r"^commit:[ \t]*(\S+)[ \t]*$", body.decode("utf-8", "replace"), re.MULTILINE)
    return match[1] if match and is_commit(match[1]) else ""
