"""Refresh the stored state of a package after a change of its sources or metadata."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from tailrace.domains.builds.audience.references import package_of
from tailrace.domains.builds.audience.visibility import ProjectRef, readers_of_projects
from tailrace.domains.builds.backends import packages
from tailrace.domains.builds.backends.client import BackendError, outcome_of
from tailrace.domains.builds.backends.metadata import InvalidName, MetadataClient
from tailrace.domains.builds.backends.names import PROJECT_SOURCES
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.backends.packages import PackageState
from tailrace.domains.builds.backends.reading import Reading
from tailrace.domains.builds.event_types.package import Commit, ServiceFail, ServiceSuccess
from tailrace.domains.builds.handlers.changes import METADATA_CHANGES, changed_by
from tailrace.domains.builds.models import Package
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip

MAX_TRAIL = 20
"""Maximum length of a chain of links that refreshes follow."""


class PackageRefresh(BaseModel):
    """A package to refresh. If the job has an event, it is built from the event."""

    backend: str = ""
    project: str = ""
    package: str = ""
    trail: list[str] = []
    """`project/package` of the packages whose refreshes caused this one, not to be repeated."""
    because_of: int = 0
    """Id of the event that started the first refresh."""

    @property
    def key(self) -> str:
        return f"{self.backend}:{self.path}"

    @property
    def path(self) -> str:
        return f"{self.project}/{self.package}"

    def of_package(self, project: str, package: str, trail: list[str]) -> "PackageRefresh":
        """Return a refresh of another package because of the same event."""
        return self.model_copy(update={"project": project, "package": package, "trail": trail})


class UpdateBackendInfos(Handler):
    """Refresh a package's source state and role holders, then the packages that link to it; for an
    event about a project, only its own metadata. A burst of events causes one refresh."""

    name = "builds.update_backend_infos"
    quiet = True
    on = [Commit, ServiceSuccess, ServiceFail, *METADATA_CHANGES]
    Payload = PackageRefresh
    # Notifications wait for the refresh. The circuit breaker keeps requests from a backend that is
    # down, so the waits are short; all attempts together take an hour and a half.
    max_attempts = 100
    backoff = Backoff(15, 60)
    delay = 3
    ordered = True
    time_limit = 180
    request_permission = "tailrace_jobs.add_job"

    def wants(self, event: Recorded) -> bool:
        return bool(reporter_of(event))

    def lane(self, event: Recorded, routing_key: str) -> str:
        return _refresh_for_event(event).key

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        return _refresh_for_event(event).key

    def payload_readers(self, payloads: Mapping[int, Any]) -> Mapping[int, Readers | None]:
        """Return the readers of the project that each job refreshes; None means everybody."""
        projects = {
            id: ProjectRef(str(payload.get("backend", "")), str(payload.get("project", "")))
            for id, payload in payloads.items()
            if isinstance(payload, dict)
        }
        readers = readers_of_projects(set(projects.values()))
        return {id: readers[project] for id, project in projects.items()}

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        target = _refresh_for_event(job.event) if job.event else job.payload
        if not target.project or not target.package:
            raise Skip("the event does not name a project and a package")
        if job.event and not target.backend:
            raise Skip(f"no backend reported the event: its source is {job.event.source!r}")
        if target.backend not in settings.OBS_BACKENDS:
            raise Skip(f"OBS_BACKEND_URL has no backend {target.backend!r}")
        try:
            return _refresh(target)
        except InvalidName as error:
            raise Skip(str(error)) from None
        except BackendError as error:
            raise outcome_of(target.backend, error) from error


def _refresh_for_event(event: Recorded) -> PackageRefresh:
    ref = changed_by(event)
    own_metadata = ref is not None and not ref.package
    ref = ref or package_of(event.raw_payload)
    return PackageRefresh(
        backend=reporter_of(event),
        project=ref.project,
        package=PROJECT_SOURCES if own_metadata else ref.package,
        because_of=event.id,
    )


def _refresh(target: PackageRefresh) -> dict[str, Any]:
    backend, project, package = target.backend, target.project, target.package
    with MetadataClient(backend) as client:
        missing = PackageState(backend, project, package, Reading.begin(backend, project, package))
        exists = packages.refresh_project(client, project, target.because_of)
        if package == PROJECT_SOURCES:
            if exists:
                return {"changed": False, "goes_on_to": 0}
            raise Skip(f"the project {project} no longer exists")
        state = packages.read_package(client, project, package) if exists else missing
    with transaction.atomic():
        changed = packages.store_package(state)
        count = _refresh_linking(target) if changed else 0
        if state.meta:
            _refresh_unknown(target, state.meta.devel_project, state.meta.devel_package)
    if not exists:
        raise Skip(f"the project {project} no longer exists")
    if state.meta is None:
        raise Skip(f"the package {target.path} no longer exists")
    return {"changed": changed, "goes_on_to": count}


def _refresh_linking(target: PackageRefresh) -> int:
    """Enqueue refreshes of the packages that link to this one, without those on the trail."""
    trail = [*target.trail, target.path]
    if len(trail) > MAX_TRAIL:
        return 0
    linking = packages.linking_to(target.backend, target.project, target.package)
    refreshes = [target.of_package(project, package, trail) for project, package in linking]
    return _enqueue([refresh for refresh in refreshes if refresh.path not in trail])


def _refresh_unknown(target: PackageRefresh, project: str, package: str) -> None:
    """Enqueue a refresh of a development package, whose role holders are receivers, too."""
    stored = Package.objects.filter(backend=target.backend, project=project, name=package)
    if project and package and not stored.exists():
        _enqueue([target.of_package(project, package, [])])


def _enqueue(refreshes: list[PackageRefresh]) -> int:
    jobs = [{"payload": each, "lane": each.key, "unique_key": each.key} for each in refreshes]
    return enqueue_many(UpdateBackendInfos, jobs)
