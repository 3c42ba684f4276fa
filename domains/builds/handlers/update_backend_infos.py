"""builds.update_backend_infos: what we keep of a package follows its sources and metadata."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from domains.builds import refresh
from domains.builds.event_types import Commit, ServiceFail, ServiceSuccess, UndeletePackage
from domains.builds.metadata import BackendError, Metadata, NotAName, NotFound
from domains.builds.models import Package
from domains.builds.origin import backend_of
from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.enqueue import enqueue_many
from jobs.handler import Backoff, Handler
from jobs.outcomes import Retry, Skip

TRAIL_LIMIT = 20
"""Links are followed this far."""


class Wanted(BaseModel):
    """A package to refresh without an event of its own; event jobs take theirs from the event."""

    backend: str = ""
    project: str = ""
    package: str = ""
    trail: list[str] = []
    """`project/package` of those whose refresh led here: not led to again."""
    because_of: int = 0
    """Id of the event that all began with."""

    @property
    def key(self) -> str:
        return f"{self.backend}:{self.path}"

    @property
    def path(self) -> str:
        return f"{self.project}/{self.package}"


class UpdateBackendInfos(Handler):
    """Refresh a package's source state and role holders, then the packages that link to it.

    Many events on one package within seconds make one refresh.
    """

    name = "builds.update_backend_infos"
    on = [Commit, UndeletePackage, ServiceSuccess, ServiceFail]
    Payload = Wanted
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900, 3600)
    delay = 3
    ordered = True
    time_limit = 180

    def lane(self, event: Recorded, routing_key: str) -> str:
        return _of_event(event).key

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        return _of_event(event).key

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        wanted = _of_event(job.event) if job.event else job.payload
        if not wanted.project or not wanted.package:
            raise Skip("the event names no project and package")
        if wanted.backend not in settings.OBS_BACKENDS:
            raise Skip(f"no backend {wanted.backend!r} to ask: see OBS_BACKEND_URL")
        try:
            return _refresh(wanted)
        except NotAName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise Retry(f"backend {wanted.backend}: {error}") from error


def _of_event(event: Recorded) -> Wanted:
    return Wanted(
        backend=backend_of(event),
        project=event.payload.get("project") or "",
        package=event.payload.get("package") or "",
        because_of=event.id,
    )


def _refresh(wanted: Wanted) -> dict[str, Any]:
    backend, project, package = wanted.backend, wanted.project, wanted.package
    with Metadata(backend) as asked:
        if not refresh.refresh_project(asked, backend, project, wanted.because_of):
            _gone(wanted, f"the project {project} is gone")
        if package == refresh.PROJECT_ITSELF:
            return {"changed": False, "goes_on_to": 0}
        try:
            meta, info = asked.package_meta(project, package), asked.source_info(project, package)
        except NotFound:
            _gone(wanted, f"the package {wanted.path} is gone")
    with transaction.atomic():
        changed = refresh.keep_package(backend, project, package, meta, info)
        onward = _go_on(wanted) if changed else 0
        _learn(wanted, meta.devel_project, meta.devel_package)
    return {"changed": changed, "goes_on_to": onward}


def _gone(wanted: Wanted, reason: str) -> NoReturn:
    with transaction.atomic():
        if refresh.mark_gone(wanted.backend, wanted.project, wanted.package):
            _go_on(wanted)
    raise Skip(reason)


def _go_on(wanted: Wanted) -> int:
    """Owe a refresh to each package that links here, but for those that led here."""
    trail = [*wanted.trail, wanted.path]
    if len(trail) > TRAIL_LIMIT:
        return 0
    linking = refresh.linking_to(wanted.backend, wanted.project, wanted.package)
    following = [
        Wanted(
            backend=wanted.backend,
            project=project,
            package=package,
            trail=trail,
            because_of=wanted.because_of,
        )
        for project, package in linking
    ]
    return _enqueue([one for one in following if one.path not in trail])


def _learn(wanted: Wanted, project: str, package: str) -> None:
    """Owe a refresh to a development package that we know nothing of: its holders stand in."""
    known = Package.objects.filter(backend=wanted.backend, project=project, name=package)
    if project and package and not known.exists():
        _enqueue([Wanted(backend=wanted.backend, project=project, package=package,
                         because_of=wanted.because_of)])  # fmt: skip


def _enqueue(wanted: list[Wanted]) -> int:
    return enqueue_many(
        UpdateBackendInfos,
        [{"payload": one, "lane": one.key, "unique_key": one.key} for one in wanted],
    )
