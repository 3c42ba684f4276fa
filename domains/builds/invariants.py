"""The invariants of builds and their repairs."""

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
from tailrace.jobs.runtime.invariant import Invariant

# The holder is `<job>.<claim>`. A lease is orphaned if the job is not running, or is running under
# another claim.
_ORPHANED_LEASES = """
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
    """The lease on a backend's log is held by a running job or is free.

    A killed worker leaves its lease behind. The repair releases it before it expires.
    """

    name = "builds.poll_leases_belong_to_running_jobs"

    def find(self) -> Sequence[int]:
        return [id for (id,) in query(_ORPHANED_LEASES, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        return Poller.objects.filter(pk__in=violations).update(lease_holder="", lease_until=None)


# The job that reads a change has the key of backends/refreshes.py, as its unique key and its lane.
# With scalar subqueries the planner reads two index entries per change instead of all jobs.
_CHANGES_WITHOUT_JOB = f"""
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
    """Each change of metadata that an event reported has been read, or has a job that reads it.

    If the backend returns errors for hours, the job fails; the repair enqueues another one.
    """

    name = "builds.changes_of_metadata_are_read"
    every = 60
    limit = MAX_REQUESTED
    age = 300.0
    """Seconds for which the event's own job may take to read the change."""

    def find(self) -> Sequence[tuple[str, str, str]]:
        values = {"backends": list(settings.OBS_BACKENDS), "own": PROJECT_SOURCES}
        rows = query(_CHANGES_WITHOUT_JOB, age=self.age, limit=self.limit, **values)
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
    """No stored end of a build log is older than a day: by then, all mails about it were sent."""

    name = "builds.log_tails_are_pruned"
    every = 600
    limit = 5000

    def find(self) -> Sequence[int]:
        tails = BuildLogTail.objects.filter(requested_at__lt=database_now() - timedelta(days=1))
        return list(tails.order_by("requested_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        return BuildLogTail.objects.filter(pk__in=violations).delete()[0]
