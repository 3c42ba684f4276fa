"""When the jobs ran last of which a subscription has no schedule any more.

So a plan that is resumed, or that has a job again, runs nothing twice in a period.
"""

from collections.abc import Sequence
from datetime import datetime

from tailrace.db.query import execute
from tailrace.jobs.models import Schedule
from tailrace.subscriptions.models import PlanSubscription

# A run that was cancelled with its schedule is none: then it is the one before that counts. Slots
# are kept for days, so of a monthly job that one may be gone; it is of another period.
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
    """Note the last runs of schedules that were removed and whose jobs that waited were cancelled;
    each with the id of its subscription."""
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
    """Return when this job ran last, if it did."""
    noted = subscription.last_runs.get(handler)
    times = [datetime.fromisoformat(noted)] if noted else []
    if schedule is not None and schedule.last_run_at is not None:
        times.append(schedule.last_run_at)
    return max(times, default=None)
