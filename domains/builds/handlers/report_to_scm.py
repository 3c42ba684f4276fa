"""Report the results of builds and requests to the hosts of the source repositories."""

from typing import Any

from django.conf import settings

from tailrace.domains.builds.backends.client import BackendError, outcome_of
from tailrace.domains.builds.backends.metadata import InvalidName
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.backends.origin import backend_of, reporter_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.domains.builds.destinations.scm.base import CommitStatus
from tailrace.domains.builds.destinations.scm.built_commits import built_commit
from tailrace.domains.builds.destinations.scm.links import NoLink, scm_link
from tailrace.domains.builds.destinations.scm.reports import Report, reports
from tailrace.domains.builds.event_types.build import BuildFail, BuildSuccess
from tailrace.domains.builds.event_types.request import RequestStatechange
from tailrace.domains.builds.handlers.send_scm_status import SendScmStatus, takes_hidden
from tailrace.domains.builds.models import Package, UnreadChange
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.hidden import HIDDEN, readers_of_jobs, wait_for
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip

UNREAD = "the metadata of a package was not read yet"


class ReportToScm(Handler):
    """Find the repository and commit of the sources that an event is about, and enqueue a status of
    this commit.

    The repository is the `<scmsync>` in the package's metadata; the commit is the one from which
    the package was built. People trust commit statuses, so an event is only reported if its source
    is a backend's own log or bus, or one of SCM_TRUSTED_SOURCES.
    """

    name = "builds.report_to_scm"
    on = [BuildSuccess, BuildFail, RequestStatechange]
    max_attempts = 6
    backoff = Backoff(15, 60, 300, 900)
    ordered = True
    time_limit = 120

    def wants(self, event: Recorded) -> bool:
        # Subclasses such as RequestReviewsDone are left out: of request events, OBS only reports
        # changes of the state (ReportToSCMJob).
        return bool(settings.SCM_TOKENS) and event.event_type in self.on

    def lane(self, event: Recorded, routing_key: str) -> str:
        return event.subject

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        event = job.require_event()
        if not (backend := _backend(event)):
            raise Skip(f"no backend reported the event: its source is {event.source!r}")
        hidden = event.id in readers_of_jobs([job])
        event_reports = list(reports(event))
        links = {} if job.outcome else _scm_links(job, backend, event_reports)
        if job.outcome is not None:
            raise job.outcome
        reported, reasons = [], []
        for report in event_reports:
            try:
                status = _status(report, links[report.package.sources], backend, hidden)
            except (NoLink, InvalidName) as error:
                reasons.append(str(error))
            except BackendError as error:
                raise outcome_of(backend, error) from error
            else:
                key = f"{status.host}/{status.path}@{status.commit}"
                enqueue(
                    SendScmStatus, status,
                    event_id=event.id, routing_key=key, lane=status.host, unique_key=status.key,
                )  # fmt: skip
                reported.append(key)
        if not reported:
            raise Skip(reasons[0] if reasons else "the request has no source packages")
        return {"reported_to": reported, "left_out": reasons}


def _backend(event: Recorded) -> str:
    """Return the backend that the event is about; "" if it is unknown or the source not trusted."""
    trusted = event.source in settings.SCM_TRUSTED_SOURCES
    backend = backend_of(event) if trusted else reporter_of(event)
    return backend if backend in settings.OBS_BACKENDS else ""


def _scm_links(job: ClaimedJob, backend: str, event_reports: list[Report]) -> dict[PackageRef, str]:
    """Return the stored `<scmsync>` of each package, or an empty string. If the metadata of a
    package is unread, enqueue a refresh and snooze the job: `job.outcome` is set."""
    packages = {report.package.sources for report in event_reports}
    projects = {package.project for package in packages}
    rows = Package.objects.filter(
        backend=backend, project__in=projects, name__in={package.package for package in packages}
    )
    stored = {PackageRef(row.project, row.name): row for row in rows}
    changes = UnreadChange.objects.filter(backend=backend, project__in=projects)
    changed = {PackageRef(*names) for names in changes.values_list("project", "package")}
    unread = [
        package
        for package in packages
        if package in changed
        or (row := stored.get(package)) is None
        or (row.scmsync is None and row.gone_at is None)
    ]
    if unread and wait_for([job], {job.require_event().id}, UNREAD):
        request_refreshes((backend, package) for package in unread)
    links = {package: row.scmsync or "" for package, row in stored.items()}
    return dict.fromkeys(packages, "") | links


def _status(report: Report, scmsync: str, backend: str, hidden: bool) -> CommitStatus:
    """Return the status to send. Raises NoLink, InvalidName or BackendError."""
    link = scm_link(scmsync)
    if link.host not in settings.SCM_TOKENS:
        raise NoLink(f"SCM_TOKENS has no token for {link.host}")
    if hidden and not takes_hidden(link.host):
        raise NoLink(HIDDEN)
    commit = built_commit(backend, report.package, report.rev) if report.rev else ""
    if not (commit or link.commit):
        raise NoLink("the sources do not name their commit (in _scmsync.obsinfo)")
    return report.status(link, commit or link.commit)
