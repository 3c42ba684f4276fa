"""Attempts: each belongs to a job, and to a claim that the job has had."""

from collections.abc import Sequence
from typing import Any

from jobs.fsck.kind import RowKind, Scope, rows


class AttemptsHaveJobs(RowKind):
    """The job of an attempt exists: both are pruned together."""

    name = "attempts.job_missing"
    table = "jobs_attempt"
    condition = "(SELECT 1 FROM jobs_job j WHERE j.id = r.job_id) IS NULL"
    repairs = True
    advice = "the attempt is deleted: nothing shows it any more"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        rows(
            f"DELETE FROM jobs_attempt r WHERE r.id = ANY(%(ids)s) AND {self.condition}"
            " RETURNING r.id",
            ids=list(keys),
        )


class AttemptsWereClaimed(RowKind):
    """An attempt's claim number is one that its job has reached.

    Else the claim that reaches it could not be settled: one claim has one attempt.
    """

    name = "attempts.claim_to_come"
    table = "jobs_attempt"
    condition = "(SELECT j.claim_no FROM jobs_job j WHERE j.id = r.job_id) < r.claim_no"
    repairs = True
    advice = "the job's claim number is raised to it; a running one is left to end first"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        rows(
            """
            UPDATE jobs_job j SET claim_no = tried.claim_no
            FROM (SELECT job_id, max(claim_no) AS claim_no FROM jobs_attempt
                  WHERE job_id IN (SELECT job_id FROM jobs_attempt WHERE id = ANY(%(ids)s))
                  GROUP BY job_id) tried
            WHERE j.id = tried.job_id AND j.claim_no < tried.claim_no AND j.state <> 'running'
            RETURNING j.id""",
            ids=list(keys),
        )
