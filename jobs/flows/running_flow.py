"""Add jobs to a flow from one of its jobs, while that job runs."""

from typing import Any

from tailrace.db import connections, locks
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.flows.graph import ADDED, FlowJob, Graph, check_size
from tailrace.jobs.flows.hold import hold
from tailrace.jobs.flows.insert import insert, states_of_existing
from tailrace.jobs.handler import ClaimedJob, LeaseLost

_FLOW_OF = """
SELECT f.id, f.name FROM tailrace_jobs_live j JOIN tailrace_jobs_flow f ON f.id = j.flow_id
WHERE j.id = %(job)s
"""
# One after the other: so two jobs that add jobs at once see each other's names.
_LOCK_FLOW = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT f.cancelled_by, f.cancelled_at IS NOT NULL AS is_cancelled, f.deadline_met,
    f.paused_at IS NOT NULL AS is_paused
  FROM limited, tailrace_jobs_flow f WHERE f.id = %(flow)s FOR NO KEY UPDATE OF f
), {locks.restored("locked")}
SELECT locked.* FROM restored, locked
"""
_IS_MINE = """
SELECT 1 FROM tailrace_jobs_live
WHERE id = %(job)s AND state = 'running' AND claim_no = %(claim_no)s AND worker = %(worker)s
"""
_NAMED = """
SELECT flow_name, id FROM tailrace_jobs_job
WHERE flow_id = %(flow)s AND flow_name = ANY(%(names)s::text[])
"""
_NAMES = "SELECT flow_name FROM tailrace_jobs_job WHERE flow_id = %(flow)s LIMIT 1000"
_COUNT = "SELECT count(*) FROM tailrace_jobs_job WHERE flow_id = %(flow)s"

# The jobs that this job's end would let run. None of them is decided before: this job runs.
_JOIN = """
WITH child AS MATERIALIZED (
  SELECT c.id, d.need, d.position
  FROM tailrace_jobs_dependency d JOIN tailrace_jobs_live c ON c.id = d.job_id
  WHERE d.parent_id = %(job)s AND c.state = 'waiting'
  UNION ALL
  SELECT c.id, 'success', 0 FROM tailrace_jobs_live c
  WHERE c.after_id = %(job)s AND c.state = 'waiting'
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = c.id)
)
INSERT INTO tailrace_jobs_dependency (job_id, parent_id, need, position)
SELECT child.id, parent.id, child.need, child.position
FROM child, unnest(%(parents)s::bigint[]) AS parent (id)
ON CONFLICT DO NOTHING
"""
# Whether one of the jobs `ids` waits for this job. Only waiting jobs can.
_WAITS_FOR_ME = """
WITH RECURSIVE above AS (
  SELECT unnest(%(ids)s::bigint[]) AS id
  UNION
  SELECT parent.id FROM above JOIN tailrace_jobs_live j ON j.id = above.id, LATERAL (
    SELECT d.parent_id AS id FROM tailrace_jobs_dependency d WHERE d.job_id = j.id
    UNION ALL SELECT j.after_id
  ) parent
  WHERE j.state = 'waiting'
)
SELECT 1 FROM above WHERE id = %(job)s
"""


class RunningFlow(Graph):
    """Jobs to be added to the flow of a running job, by its handler.

        flow = RunningFlow(job)
        flow.group(ReadPage, pages, joins=True)
        flow.enqueue()

    Their names get `@` and the id of the job that adds them: a job that is tried again adds nothing
    twice. Parents in the flow can be given by their names or ids. Raises InvalidJob if the job
    belongs to no flow.
    """

    def __init__(self, job: ClaimedJob) -> None:
        with connections.engine():
            rows = query(_FLOW_OF, job=job.id)
        if not rows:
            raise InvalidJob(f"job {job.id} of {job.handler.name} belongs to no flow")
        self.id, name = rows[0]
        self.job = job
        super().__init__(name)

    def add(self, *args: Any, joins: bool = False, **options: Any) -> FlowJob:
        """Add a job as `NewFlow.add` does. If it `joins`, the jobs that wait for the running job
        wait for it, too, in the same way."""
        job = super().add(*args, **options)
        job.joins = joins
        return job

    def add_flow(self, *args: Any, joins: bool = False, **options: Any) -> list[FlowJob]:
        """Add the jobs of another flow as `NewFlow.add_flow` does. If it `joins`, the jobs that
        wait for the running job wait for its last jobs, too."""
        last = super().add_flow(*args, **options)
        for job in last:
            job.joins = joins
        return last

    def full_name(self, name: str) -> str:
        return f"{name}{ADDED}{self.job.id}"

    def by_name(self, job: FlowJob, name: str) -> FlowJob | int:
        if (parent := self.jobs.get(self.full_name(name))) is not None:
            return parent
        existing = query(_NAMED, flow=self.id, names=text_array([name]))
        if existing:
            return int(existing[0][1])
        known = [*self.jobs, *(name for (name,) in query(_NAMES, flow=self.id))]
        raise InvalidJob(
            f"{self.named(job)} waits for {name!r}: there is no job with this name"
            f"{did_you_mean(name, known)}"
        )

    def enqueue(self) -> list[int]:
        """Add the jobs in the caller's transaction, and return their ids, with the jobs that an
        earlier attempt of this job added.

        Raises InvalidJob as `NewFlow.enqueue`, or if the flow was cancelled, and LeaseLost if
        another worker has claimed the job.
        """
        jobs = self.in_order()
        with connections.atomic():  # a savepoint: an error does not end the caller's transaction
            self._add_to_flow(jobs)
        return [job.id for job in jobs if job.id is not None]

    def _add_to_flow(self, jobs: list[FlowJob]) -> None:
        with locks.named(lambda: f"flow {self.id}"):
            [(cancelled_by, is_cancelled, deadline_met, is_paused)] = query(
                _LOCK_FLOW, flow=self.id, **locks.params()
            )
        if is_cancelled or deadline_met is False:
            reason = f"was cancelled by {cancelled_by}" if is_cancelled else "missed its deadline"
            raise InvalidJob(f"flow {self.id} ({self.name}) {reason}: no jobs can be added")
        mine = {"claim_no": self.job.claim_no, "worker": self.job.worker}
        if not query(_IS_MINE, job=self.job.id, **mine):
            raise LeaseLost("another worker has claimed the job")
        existing = dict(query(_NAMED, flow=self.id, names=text_array(job.name for job in jobs)))
        for job in jobs:
            job.id = existing.get(job.name)
        new = [job for job in jobs if job.id is None]
        for job in new:
            job.parents = {_id_or_new(parent): need for parent, need in job.parents.items()}
        [(count,)] = query(_COUNT, flow=self.id)
        check_size(self.name, count + len(new))
        self._check_circles(new)
        insert(self.id, new, states_of_existing(self.name, new))
        if joining := [job.id for job in new if job.joins]:
            execute(_JOIN, job=self.job.id, parents=number_array([self.job.id, *joining]))
        if is_paused:
            hold(self.id)

    def _check_circles(self, jobs: list[FlowJob]) -> None:
        """Raise InvalidJob if a job that joins waits, itself or by its parents, for a job that
        waits for the running job."""
        above = dict.fromkeys(job for job in jobs if job.joins)
        rest = list(above)
        for job in rest:
            new = [each for each in job.parents if isinstance(each, FlowJob) and each not in above]
            above |= dict.fromkeys(new)
            rest += new
        ids = {each for job in above for each in job.parents if isinstance(each, int)}
        if ids and query(_WAITS_FOR_ME, ids=number_array(sorted(ids)), job=self.job.id):
            raise InvalidJob(
                f"flow {self.id} ({self.name}): a job that joins waits for a job which waits for"
                f" job {self.job.id}: they would wait for one another"
            )


def _id_or_new(parent: FlowJob | str | int) -> FlowJob | str | int:
    """Return the id of a parent that exists, else the parent."""
    return parent.id if isinstance(parent, FlowJob) and parent.id is not None else parent
