"""Fetch the end of the log of a failed build, for the mails about it."""

import re

from django.conf import settings

from tailrace.db import clock
from tailrace.domains.builds.backends.client import BackendClient, BackendError, NotFound
from tailrace.domains.builds.backends.log_tails import has_log
from tailrace.domains.builds.backends.metadata import InvalidName, parsed, path_of
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.models import BuildLogTail
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Retry, Skip
from tailrace.net.sanitize import plain_breaks, printable

SECONDS = 10.0
"""Timeout of each of the two requests. After a timeout the mails are sent without the log."""
LINES = 30
_ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)")
"""Terminal escape sequences, such as colours and window titles."""


class FetchBuildLog(Handler):
    """Fetch and store the end of the log of a failed build, or the reason why it cannot be fetched.
    The first mail about the event creates the job."""

    name = "builds.fetch_build_log"
    max_attempts = 2
    backoff = Backoff(5)
    time_limit = 45

    def handle(self, job: ClaimedJob) -> dict[str, int]:
        event = job.require_event()
        if not has_log(event):
            raise Skip("the build log of this event cannot be requested from a backend")
        try:
            build = event.payload
            names = (build.project, build.package, build.repository, build.arch)
            text, problem = log_tail(reporter_of(event), *(name or "" for name in names)), ""
        except (NotFound, InvalidName):
            text, problem = "", "the backend has no such log"
        except BackendError as error:
            if job.attempt < self.max_attempts:
                raise Retry(str(error)) from error
            text, problem = "", "the backend did not send it"
        BuildLogTail.objects.filter(event=event.id).update(
            text=text, problem=problem, fetched_at=clock.now()
        )
        return {"characters": len(text)}


def log_tail(backend: str, project: str, package: str, repository: str, arch: str) -> str:
    """Return the last lines of the log of the package's latest build, at most LINES and
    OBS_LOG_TAIL_BYTES. Raises BackendError or InvalidName.

    Like OBS for its mails (`faillog` in event/build_fail.rb), request the size with `view=entry`,
    then the bytes from `start` to `end`.
    """
    path = path_of("build", project, repository, arch, package, "_log")
    limit, url = settings.OBS_LOG_TAIL_BYTES, settings.OBS_BACKENDS[backend]
    # Logs come from other servers than notifications and metadata.
    breaker, max_bytes = f"builds.build_logs:{backend}", limit + 16 * 1024
    with BackendClient(
        backend, url, seconds=SECONDS, max_bytes=max_bytes, breaker=breaker
    ) as client:
        size = _size(client.get(path, {"view": "entry"}))
        start = max(size - limit, 0)
        if not size:
            return ""
        log = client.get(path, {"nostream": 1, "start": start, "end": size})
    return _last_lines(log[-limit:], cut=start > 0)


def _size(body: bytes) -> int:
    """Return the size in `<directory><entry name="_log" size="123" …/></directory>`."""
    entry = parsed(body, "the size of the log").find("entry")
    text = "" if entry is None else entry.get("size", "")
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0


def _last_lines(log: bytes, *, cut: bool) -> str:
    """Return the last LINES lines as text, without the incomplete first line of a `cut` log."""
    text = printable(_ESCAPE_SEQUENCE.sub("", plain_breaks(log.decode("utf-8", "replace"))))
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    if cut and 1 < len(lines) <= LINES:
        del lines[0]
    return "\n".join(lines[-LINES:])
