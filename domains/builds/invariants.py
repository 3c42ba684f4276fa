"""What must always be true of the stored state of builds, and how it is repaired."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from db.query import database_now, query
from domains.builds.models import Poller, ProjectLogEntry
from domains.builds.models.project_log import BUILD_RESULTS
from jobs.maintenance.invariant import Invariant

# The holder is `<job>.<claim>`. If the job is not running, or runs under another claim, the lease
# belongs to nobody.
_ORPHANED = """
SELECT p.id FROM builds_poller p
WHERE p.lease_holder <> '' AND NOT EXISTS (
  SELECT 1 FROM jobs_job j
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
