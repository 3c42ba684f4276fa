"""Report the results of builds and requests to where the sources are kept."""

from typing import Any

from django.conf import settings

from tailrace.domains.builds.backends.client import BackendError, outcome_of
from tailrace.domains.builds.backends.metadata import InvalidName
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.backends.origin import backend_of, reporter_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.domains.builds.event_types.build import BuildFail, BuildSuccess
from tailrace.domains.builds.event_types.request import RequestStatechange
from tailrace.domains.builds.handlers.send_scm_status import SendScmStatus, takes_hidden
from tailrace.domains.builds.models import Package, UnreadChange
from tailrace.domains.builds.scm.base import CommitStatus
from tailrace.domains.builds.scm.built_commits import built_commit
from tailrace.domains.builds.scm.links import NoLink, ScmLink, scm_link
from tailrace.domains.builds.scm.reports import Report, reports
from tailrace.events.publish import Recorded
from tailrace.jobs.backoff import Backoff
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.hidden import HIDDEN, readers_of_jobs, wait_for
from tailrace.jobs.outcomes import Skip

UNREAD = "the metadata of a package was not read yet"


class ReportToScm(Handler):
    """Find the repository and the commit that an event is about, and have its status set there.

    The repository is that of the package's `<scmsync>`, the commit that of the sources that were
    built. `builds.send_scm_status` sends the status. Only events that a backend's own log or bus
    reported, or that come from one of SCM_TRUSTED_SOURCES: a status is believed.
    """

    name = "builds.report_to_scm"
    on = [BuildSuccess, BuildFail, RequestStatechange]
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900)
    ordered = True
    time_limit = 120

    def wants(self, event: Recorded) -> bool:
        # Of request events OBS reports changes of the state alone (ReportToSCMJob).
        return bool(settings.SCM_TOKENS) and event.type in {
            each.name for each in self.event_types()
        }

    def lane(self, event: Recorded, routing_key: str) -> str:
        return event.subject

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        event = job.event
        if event is None:
            raise Skip("its event no longer exists")
        if not (backend := _backend(event)):
            raise Skip(f"no backend reported the event: its source is {event.source!r}")
        hidden = event.id in readers_of_jobs([job])
        wanted = list(reports(event))
        links = {} if job.outcome else _links(job, backend, wanted)
        if job.outcome is not None:
            raise job.outcome
        reported, reasons = [], []
        for report in wanted:
            try:
                status = _status(report, links[report.package.sources], backend, hidden)
            except (NoLink, InvalidName) as error:
                reasons.append(str(error))
            except BackendError as error:
                raise outcome_of(backend, error) from error
            else:
                _send(event, status)
                reported.append(f"{status.host}/{status.path}@{status.commit}")
        if not reported:
            raise Skip(reasons[0] if reasons else "the request has no source packages")
        return {"reported_to": reported, "left_out": reasons}


def _backend(event: Recorded) -> str:
    """Return the backend that the event is about if the event may be believed."""
    trusted = event.source in settings.SCM_TRUSTED_SOURCES
    backend = backend_of(event) if trusted else reporter_of(event)
    return backend if backend in settings.OBS_BACKENDS else ""


def _links(job: ClaimedJob, backend: str, wanted: list[Report]) -> dict[PackageRef, str]:
    """Return the stored `<scmsync>` of each package. The job waits, and has an outcome, while one
    of them was not read."""
    packages = {report.package.sources for report in wanted}
    rows = Package.objects.filter(
        backend=backend,
        project__in={package.project for package in packages},
        name__in={package.package for package in packages},
    )
    stored = {PackageRef(row.project, row.name): row for row in rows}
    changes = UnreadChange.objects.filter(
        backend=backend, project__in={package.project for package in packages}
    )
    changed = {PackageRef(*names) for names in changes.values_list("project", "package")}
    unread = [
        package
        for package in packages
        if package in changed
        or (row := stored.get(package)) is None
        or (row.scmsync is None and row.gone_at is None)
    ]
    if unread and job.event and wait_for([job], {job.event.id}, UNREAD):
        request_refreshes((backend, package) for package in unread)
    links = {package: stored[package].scmsync or "" for package in packages if package in stored}
    return {package: links.get(package, "") for package in packages}


def _status(report: Report, scmsync: str, backend: str, hidden: bool) -> CommitStatus:
    """Return what is to be set where; raise NoLink, InvalidName or BackendError."""
    link = scm_link(scmsync)
    if link.host not in settings.SCM_TOKENS:
        raise NoLink(f"SCM_TOKENS has no token for {link.host}")
    if hidden and not takes_hidden(link.host):
        raise NoLink(HIDDEN)
    return report.status(link, _commit(report, link, backend))


def _commit(report: Report, link: ScmLink, backend: str) -> str:
    commit = built_commit(backend, report.package, report.rev) if report.rev else ""
    if not (commit or link.commit):
        raise NoLink("the sources do not say which commit they are (_scmsync.obsinfo)")
    return commit or link.commit


def _send(event: Recorded, status: CommitStatus) -> None:
    """Enqueue the status; one of the same context that was not sent yet is replaced."""
    enqueue(
        SendScmStatus,
        status,
        event_id=event.id,
        routing_key=f"{status.host}/{status.path}@{status.commit}",
        lane=status.host,
        unique_key=status.key,
    )
