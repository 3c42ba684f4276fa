"""What the tables never contain, whatever happens."""

from tailrace.jobs.engine import registry
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import LIVE, UNSTARTED
from tests.properties.machine.recording import execute

_LIVE = ", ".join(f"'{state}'" for state in LIVE)


_UNSTARTED = ", ".join(f"'{state}'" for state in UNSTARTED)


_NEVER = {
    "two unstarted jobs of one unique key": f"""
      SELECT min(id) FROM tailrace_jobs_job WHERE unique_key IS NOT NULL AND state IN ({_UNSTARTED})
      GROUP BY handler, unique_key HAVING count(*) > 1""",
    "two jobs run in an ordered lane": """
      SELECT min(j.id) FROM tailrace_jobs_job j, unnest(%(ordered)s::text[]) h (name)
      WHERE j.handler = h.name AND j.state = 'running'
      GROUP BY j.handler, j.lane HAVING count(*) > 1""",
    "more attempts than the maximum": """
      SELECT j.id FROM tailrace_jobs_job j
      JOIN unnest(%(handlers)s::text[], %(most)s::int[]) h (name, most) ON h.name = j.handler
      WHERE j.attempt > h.most""",
    "a job that belies its state": f"""
      SELECT id FROM tailrace_jobs_job WHERE (state = 'running') <> (lease_until IS NOT NULL)
        OR (finished_at IS NULL) <> (state IN ({_LIVE}))
        OR state IN ({_UNSTARTED}) AND cancel_requested
        OR state = 'running' AND (claim_no = 0 OR attempt = 0 OR worker = '')""",
    "an attempt of a claim that its job has not had": """
      SELECT a.job_id FROM tailrace_jobs_attempt a LEFT JOIN tailrace_jobs_job j ON j.id = a.job_id
      WHERE j.id IS NULL OR j.claim_no < a.claim_no""",
    "a failure without its attempt": """
      SELECT j.id FROM tailrace_jobs_job j WHERE state = 'failed' AND claim_no > 0 AND NOT EXISTS (
        SELECT 1 FROM tailrace_jobs_attempt a WHERE a.job_id = j.id AND a.claim_no = j.claim_no)""",
}  # fmt: skip


_LOOK = " UNION ALL ".join(f"SELECT '{name}', w.* FROM ({sql}) w" for name, sql in _NEVER.items())


def of_the_engine() -> list[str]:
    """Return the names of the invariants of jobs, flows, queues and schedules: not of domains."""
    kinds = ("jobs.", "flows.", "queues.", "schedules.")
    return [each.name for each in all_invariants() if each.name.startswith(kinds)]


def broken_rules() -> list[tuple[str, int]]:
    """Return the rules that the tables break now, and the job of each."""
    handlers = registry.all_handlers()
    params = {
        "handlers": list(handlers),
        "most": [handler.max_attempts for handler in handlers.values()],
        "ordered": [name for name, handler in handlers.items() if handler.ordered],
    }
    return execute(_LOOK, params)
