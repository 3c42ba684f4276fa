"""What must always be true of the stored state of builds, and how it is repaired."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from tailrace.db import clock
from tailrace.db.query import database_now, query
from tailrace.domains.builds.backends.names import PROJECT_SOURCES, PackageRef
from tailrace.domains.builds.backends.refreshes import MAX_REQUESTED, request_refreshes
from tailrace.domains.builds.models import BuildLogTail, Poller, ProjectLogEntry
from tailrace.domains.builds.models.project_log import BUILD_RESULTS
from tailrace.jobs.maintenance.invariant import Invariant

# The holder is `<job>.<claim>`. If the job is not running, or runs under another claim, the lease
# belongs to nobody.
_ORPHANED = """
SELECT p.id FROM tailrace_builds_poller p
WHERE p.lease_holder <> '' AND NOT EXISTS (
  SELECT 1 FROM tailrace_jobs_job j
  WHERE j.id = CASE WHEN p.lease_holder ~ '^[0-9]{1,18}[.]'
                    THEN split_part(p.lease_holder, '.', 1)::bigint END
    AND j.state = 'running' AND j.claim_no::text = split_part(p.lease_holder, '.', 2)
)
ORDER BY p.id LIMIT %(limit)s
FOR UPDATE SKIP LOCKED
"""


class PollLeasesBelongToRunningJobs(Invariant):
    """The right to read a backend's log is held by a running job, or by none.

    A worker that is killed leaves its lease behind. When its job is no longer running, others need
    not wait until the lease expires.
    """

    name = "builds.poll_leases_belong_to_running_jobs"

    def find(self) -> Sequence[int]:
        return [id for (id,) in query(_ORPHANED, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        return Poller.objects.filter(pk__in=violations).update(lease_holder="", lease_until=None)


# The change's refresh has the key of backends/refreshes.py, as its lane, too. The scalar subqueries
# stop the planner from reading all jobs once instead of two index entries per change.
_FORGOTTEN = f"""
SELECT backend, project, package FROM (
  SELECT DISTINCT backend, project, package,
    backend || ':' || project || '/' || coalesce(nullif(package, ''), %(own)s) AS key
  FROM tailrace_builds_unreadchange
  WHERE recorded_at < {clock.NOW} - make_interval(secs => %(age)s)
    AND backend = ANY(%(backends)s::text[])
) u
WHERE (SELECT 1 FROM tailrace_jobs_job j
       WHERE j.handler = 'builds.update_backend_infos' AND j.unique_key = u.key
         AND j.state IN ('waiting', 'pending') LIMIT 1) IS NULL
  AND (SELECT 1 FROM tailrace_jobs_job j
       WHERE j.handler = 'builds.update_backend_infos' AND j.lane = u.key
         AND j.state = 'running' LIMIT 1) IS NULL
LIMIT %(limit)s
"""


class ChangesOfMetadataAreRead(Invariant):
    """A change of metadata that an event reported is read, or a job is going to read it.

    Until then a project counts as hidden. The job fails for good if the backend returns errors
    for hours, and another one is enqueued.
    """

    name = "builds.changes_of_metadata_are_read"
    every = 60
    limit = MAX_REQUESTED
    age = 300.0
    """Seconds within which the job of the event reads it."""

    def find(self) -> Sequence[tuple[str, str, str]]:
        backends = list(settings.OBS_BACKENDS)
        rows = query(
            _FORGOTTEN, age=self.age, backends=backends, own=PROJECT_SOURCES, limit=self.limit
        )
        return [(backend, project, package) for backend, project, package in rows]

    def repair(self, violations: Sequence[tuple[str, str, str]]) -> int:
        request_refreshes(
            (backend, PackageRef(project, package)) for backend, project, package in violations
        )
        return len(violations)


class ProjectLogIsPruned(Invariant):
    """No project log entry is older than PROJECT_LOG_BUILD_DAYS or PROJECT_LOG_DAYS."""

    name = "builds.project_log_is_pruned"
    every = 60
    limit = 5000

    def find(self) -> Sequence[int]:
        build_results = Q(type__in=BUILD_RESULTS)
        return [
            *self._older(build_results, settings.PROJECT_LOG_BUILD_DAYS),
            *self._older(~build_results, settings.PROJECT_LOG_DAYS),
        ]

    def repair(self, violations: Sequence[int]) -> int:
        return ProjectLogEntry.objects.filter(pk__in=violations).delete()[0]

    def _older(self, condition: Q, days: int) -> list[int]:
        entries = ProjectLogEntry.objects.filter(
            condition, occurred_at__lt=database_now() - timedelta(days=days)
        )
        return list(entries.order_by("occurred_at").values_list("pk", flat=True)[: self.limit // 2])


class LogTailsArePruned(Invariant):
    """No end of a build log is older than a day: mails about the build were sent long before."""

    name = "builds.log_tails_are_pruned"
    every = 600
    limit = 5000

    def find(self) -> Sequence[int]:
        tails = BuildLogTail.objects.filter(requested_at__lt=database_now() - timedelta(days=1))
        return list(tails.order_by("requested_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        return BuildLogTail.objects.filter(pk__in=violations).delete()[0]
