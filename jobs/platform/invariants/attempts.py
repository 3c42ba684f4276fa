"""Attempts: each belongs to a job and to a claim of that job."""

from collections.abc import Sequence

from tailrace.db.query import execute
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import RowInvariant


class AttemptHasJob(RowInvariant):
    """The job of an attempt exists; both are pruned together."""

    name = "attempts.job_missing"
    table = "tailrace_jobs_attempt"
    condition = "(SELECT 1 FROM tailrace_jobs_job j WHERE j.id = r.job_id) IS NULL"
    advice = "the attempt is deleted, because no page shows it any more"

    def repair(self, violations: Sequence[int]) -> int:
        sql = "DELETE FROM tailrace_jobs_attempt WHERE id = ANY(%(ids)s)"
        return execute(sql, ids=self.lock(violations))


class AttemptWasClaimed(RowInvariant):
    """An attempt's claim number is not higher than its job's.

    Otherwise the job's claim with that number could not be settled, because it has an attempt.
    """

    name = "attempts.claim_to_come"
    table = "tailrace_jobs_attempt"
    condition = "(SELECT j.claim_no FROM tailrace_jobs_job j WHERE j.id = r.job_id) < r.claim_no"
    advice = "the job's claim number is raised to the attempt's, unless the job is running"

    def repair(self, violations: Sequence[int]) -> int:
        return execute(
            """
            WITH tried AS (
              SELECT job_id, max(claim_no) AS claim_no FROM tailrace_jobs_attempt
              WHERE job_id IN (SELECT job_id FROM tailrace_jobs_attempt WHERE id = ANY(%(ids)s))
              GROUP BY job_id
            ), behind AS (
              SELECT j.id, tried.claim_no FROM tailrace_jobs_job j JOIN tried ON j.id = tried.job_id
              WHERE j.claim_no < tried.claim_no AND j.state <> 'running'
              ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
            )
            UPDATE tailrace_jobs_job j SET claim_no = behind.claim_no FROM behind
            WHERE j.id = behind.id""",
            ids=list(violations),
        )
