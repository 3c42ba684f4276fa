"""Keep the last runs of jobs whose schedules were removed from a subscription, so that no job runs
twice in a period when a subscription is resumed or when a plan gets a job back."""

from collections.abc import Sequence
from datetime import datetime

from tailrace.db.query import execute
from tailrace.jobs.models import Schedule
from tailrace.subscriptions.models import PlanSubscription

# If the last run was cancelled together with its schedule, the run before it counts. Slots are kept
# for days, so the run before may be missing for a monthly job; but that run is of another period.
_KEEP = """
WITH removed AS (
  SELECT * FROM unnest(%(ids)s::bigint[], %(subscriptions)s::bigint[], %(handlers)s::text[],
    %(times)s::timestamptz[]) AS row (id, subscription, handler, last_run_at)
), run AS (
  SELECT subscription, handler, CASE WHEN EXISTS (
      SELECT 1 FROM tailrace_jobs_slot slot JOIN tailrace_jobs_job j ON j.id = slot.job_id
      WHERE slot.schedule_id = r.id AND slot.at = r.last_run_at AND j.state = 'cancelled')
    THEN (
      SELECT max(slot.at) FROM tailrace_jobs_slot slot
        JOIN tailrace_jobs_job j ON j.id = slot.job_id
      WHERE slot.schedule_id = r.id AND slot.outcome = 'ran' AND j.state <> 'cancelled')
    ELSE r.last_run_at END AS at
  FROM removed r
)
UPDATE tailrace_subscriptions_plansubscription p SET last_runs = p.last_runs || kept.runs
FROM (
  SELECT subscription, jsonb_object_agg(handler, at) AS runs
  FROM run WHERE at IS NOT NULL GROUP BY subscription
) kept WHERE p.id = kept.subscription
"""


def keep(removed: Sequence[tuple[int, Schedule]]) -> None:
    """Store the last runs of removed schedules (pairs of subscription id and schedule) whose
    waiting jobs were cancelled."""
    execute(
        _KEEP,
        ids=[row.pk for _, row in removed],
        subscriptions=[id for id, _ in removed],
        handlers=[row.handler for _, row in removed],
        times=[row.last_run_at for _, row in removed],
    )


def last_run(
    subscription: PlanSubscription, handler: str, schedule: Schedule | None
) -> datetime | None:
    """Return the time of the job's last run, or None."""
    stored_time = subscription.last_runs.get(handler)
    times = [datetime.fromisoformat(stored_time)] if stored_time else []
    if schedule is not None and schedule.last_run_at is not None:
        times.append(schedule.last_run_at)
    return max(times, default=None)
