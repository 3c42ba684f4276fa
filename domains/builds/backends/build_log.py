"""Read the end of a build's log."""

import re

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring
from django.conf import settings

from tailrace.domains.builds.backends.client import BackendClient, BackendError
from tailrace.domains.builds.backends.metadata import path_of
from tailrace.net.sanitize import plain_breaks, printable

SECONDS = 10.0
"""Timeout of each of the two requests. After a timeout the mails are sent without the log."""
LINES = 30
_ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)")
"""Terminal escape sequences, such as colours and window titles."""


def log_tail(backend: str, project: str, package: str, repository: str, arch: str) -> str:
    """Return the last lines of the log of the package's latest build, at most LINES and
    OBS_LOG_TAIL_BYTES. Raises BackendError or InvalidName.

    Like OBS for its mails (`faillog` in event/build_fail.rb), request the size with `view=entry`,
    then the bytes from `start` to `end`.
    """
    path = path_of("build", project, repository, arch, package, "_log")
    limit = settings.OBS_LOG_TAIL_BYTES
    url = settings.OBS_BACKENDS[backend]
    # Logs have a separate circuit breaker: they come from other servers than notifications and
    # metadata.
    with BackendClient(
        backend,
        url,
        seconds=SECONDS,
        max_bytes=limit + 16 * 1024,
        breaker=f"builds.build_logs:{backend}",
    ) as client:
        size = _size(client.get(path, {"view": "entry"}))
        start = max(size - limit, 0)
        if not size:
            return ""
        log = client.get(path, {"nostream": 1, "start": start, "end": size})
    return _last_lines(log[-limit:], cut=start > 0)


def _size(body: bytes) -> int:
    """Return the size in `<directory><entry name="_log" size="123" …/></directory>`."""
    try:
        entry = fromstring(body, forbid_dtd=True).find("entry")
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise BackendError(f"the size of the log is not readable XML: {error}") from None
    text = "" if entry is None else entry.get("size", "")
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0


def _last_lines(log: bytes, *, cut: bool) -> str:
    """Return the last LINES lines as text. If the beginning of the log is `cut` off, leave out the
    first line, which is incomplete."""
    text = printable(_ESCAPE_SEQUENCE.sub("", plain_breaks(log.decode("utf-8", "replace"))))
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    if cut and 1 < len(lines) <= LINES:
        del lines[0]
    return "\n".join(lines[-LINES:])
