"""What should be true of the domain's stored state, and the repairs."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from domains.builds.models import Poller
from domains.builds.retention import ProjectLogIsKeptInTime
from jobs.invariants import Invariant

__all__ = ["PollersAreHeldByTheLiving", "ProjectLogIsKeptInTime"]

# The holder is `<job>.<claim>`; a job that runs under another claim, or not at all, holds nothing.
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


class PollersAreHeldByTheLiving(Invariant):
    """The right to read a backend's log is held by a job that runs, or by none.

    A worker that was killed leaves its lease behind; once its job is no longer running, others
    need not wait for the lease's end.
    """

    name = "builds.pollers_are_held_by_the_living"

    def find(self) -> Sequence[Any]:
        with connection.cursor() as cursor:
            cursor.execute(_ORPHANED, {"limit": self.limit})
            return [row[0] for row in cursor.fetchall()]

    def repair(self, found: Sequence[Any]) -> int:
        return Poller.objects.filter(pk__in=found).update(lease_holder="", lease_until=None)
