"""Refresh what is stored of a package after its sources or metadata changed."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from domains.builds.backends import packages
from domains.builds.backends.client import BackendError, NotFound
from domains.builds.backends.metadata import InvalidName, MetadataClient
from domains.builds.backends.origin import backend_of
from domains.builds.event_types.package import (
    Commit,
    PackageEvent,
    ServiceFail,
    ServiceSuccess,
    UndeletePackage,
)
from domains.builds.models import Package
from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.enqueue import enqueue_many
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Retry, Skip

MAX_TRAIL = 20
"""The number of links that are followed one after another."""


class PackageRefresh(BaseModel):
    """A package to refresh. Jobs of an event build it from the event."""

    backend: str = ""
    project: str = ""
    package: str = ""
    trail: list[str] = []
    """`project/package` of the packages whose refresh led here; they are not refreshed again."""
    because_of: int = 0
    """Id of the event that started the first refresh."""

    @property
    def key(self) -> str:
        return f"{self.backend}:{self.path}"

    @property
    def path(self) -> str:
        return f"{self.project}/{self.package}"

    def other(self, project: str, package: str, trail: list[str] | None = None) -> "PackageRefresh":
        """Return the refresh of another package because of the same event."""
        changes = {"project": project, "package": package, "trail": trail or []}
        return self.model_copy(update=changes)


class UpdateBackendInfos(Handler):
    """Refresh a package's source state and role holders, then the packages that link to it.

    Many events on one package within seconds cause one refresh.
    """

    name = "builds.update_backend_infos"
    on = [Commit, UndeletePackage, ServiceSuccess, ServiceFail]
    Payload = PackageRefresh
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
        target = _of_event(job.event) if job.event else job.payload
        if not target.project or not target.package:
            raise Skip("the event does not name a project and a package")
        if target.backend not in settings.OBS_BACKENDS:
            raise Skip(f"OBS_BACKEND_URL has no backend {target.backend!r}")
        try:
            return _refresh(target)
        except InvalidName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise Retry(f"backend {target.backend}: {error}") from error


def _of_event(event: Recorded) -> PackageRefresh:
    payload: PackageEvent.Payload = event.payload
    return PackageRefresh(
        backend=backend_of(event),
        project=payload.project or "",
        package=payload.package or "",
        because_of=event.id,
    )


def _refresh(target: PackageRefresh) -> dict[str, Any]:
    backend, project, package = target.backend, target.project, target.package
    with MetadataClient(backend) as client:
        if not packages.refresh_project(client, project, target.because_of):
            _skip_gone(target, f"the project {project} no longer exists")
        if package == packages.PROJECT_SOURCES:
            return {"changed": False, "goes_on_to": 0}
        try:
            meta = client.package_meta(project, package)
            info = client.source_info(project, package)
        except NotFound:
            _skip_gone(target, f"the package {target.path} no longer exists")
    with transaction.atomic():
        changed = packages.store_package(backend, project, package, meta, info)
        count = _refresh_linking(target) if changed else 0
        _refresh_unknown(target, meta.devel_project, meta.devel_package)
    return {"changed": changed, "goes_on_to": count}


def _skip_gone(target: PackageRefresh, reason: str) -> NoReturn:
    with transaction.atomic():
        if packages.mark_gone(target.backend, target.project, target.package):
            _refresh_linking(target)
    raise Skip(reason)


def _refresh_linking(target: PackageRefresh) -> int:
    """Enqueue a refresh of each package that links to this one, except those on the trail."""
    trail = [*target.trail, target.path]
    if len(trail) > MAX_TRAIL:
        return 0
    linking = packages.linking_to(target.backend, target.project, target.package)
    refreshes = [target.other(project, package, trail) for project, package in linking]
    return _enqueue([refresh for refresh in refreshes if refresh.path not in trail])


def _refresh_unknown(target: PackageRefresh, project: str, package: str) -> None:
    """Enqueue a refresh of a development package that is not stored yet: its holders are used."""
    stored = Package.objects.filter(backend=target.backend, project=project, name=package)
    if project and package and not stored.exists():
        _enqueue([target.other(project, package)])


def _enqueue(refreshes: list[PackageRefresh]) -> int:
    return enqueue_many(
        UpdateBackendInfos,
        [
            {"payload": refresh, "lane": refresh.key, "unique_key": refresh.key}
            for refresh in refreshes
        ],
    )
