"""Find the commit statuses to report for an event, one for each package."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings

from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.destinations.scm.base import CommitStatus, State
from tailrace.domains.builds.destinations.scm.links import ScmLink
from tailrace.domains.builds.event_types.build import BuildFail, BuildSuccess
from tailrace.domains.builds.event_types.obs_headers import actions_of
from tailrace.events.publish import Recorded

MAX_CONTEXT = 255
_STATES: dict[str, State] = {BuildFail.name: "failure", BuildSuccess.name: "success"}
_REQUEST_STATES: dict[str, State] = {
    "accepted": "success",
    "declined": "failure",
    "superseded": "failure",
    "revoked": "failure",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The status to report for an event, for the commit of one package's sources."""

    package: PackageRef
    rev: str
    """The revision or srcmd5 of the sources; empty if unknown."""
    state: State
    context: str
    target_path: str

    def status(self, link: ScmLink, commit: str) -> CommitStatus:
        web = settings.OBS_WEB_URL.rstrip("/")
        return CommitStatus(
            host=link.host,
            path=link.path,
            commit=commit,
            state=self.state,
            context=self.context[:MAX_CONTEXT],
            target_url=f"{web}{self.target_path}" if web else "",
            encrypted=link.encrypted,
        )


def reports(event: Recorded) -> Iterator[Report]:
    """Yield the reports for an event: one for a build, or one for each source package of a request.
    States and contexts are the same as in OBS (app/services/scm_status_reporter.rb)."""
    if event.type in _STATES:
        yield _build_report(event, _STATES[event.type])
    else:
        yield from _request_reports(event)


def _build_report(event: Recorded, state: State) -> Report:
    build = event.payload
    package = PackageRef(build.project or "", build.package or "")
    return Report(
        package=package,
        rev=build.srcmd5 or build.rev or "",
        state=state,
        context=f"OBS: {package.package} - {build.repository}/{build.arch}",
        target_path=f"/package/show/{quote(package.project)}/{quote(package.package)}",
    )


def _request_reports(event: Recorded) -> Iterator[Report]:
    request = event.raw_payload
    number = str(request.get("number") or "")
    packages: dict[PackageRef, str] = {}
    for action in actions_of(request):
        project, package = action.get("sourceproject"), action.get("sourcepackage")
        if isinstance(project, str) and isinstance(package, str):
            packages[PackageRef(project, package)] = str(action.get("sourcerevision") or "")
    for package_ref, rev in packages.items():
        yield Report(
            package=package_ref,
            rev=rev,
            state=_REQUEST_STATES.get(request.get("state") or "", "pending"),
            context=f"OBS: Request {number}",
            target_path=f"/request/show/{quote(number)}",
        )
