from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.claiming.claim_sql import DUE_JOBS
from tailrace.jobs.models import Queue
from tailrace.jobs.operations.pause import resume
from tailrace.jobs.platform.inspection.display.formatting import count, when
from tailrace.jobs.platform.inspection.verdict.cause import Button, Cause, Check, Facts, admin_link
from tailrace.jobs.runtime import audit

MAX_COUNTED = 1000
MAX_QUEUES = 20

_PAUSED = f"""
SELECT name, paused_by, paused_at, paused_reason, paused_until, due FROM (
  SELECT q.name, q.paused_by, q.paused_at, q.paused_reason, q.paused_until, {DUE_JOBS} AS due
  FROM tailrace_jobs_queue q WHERE q.paused_at IS NOT NULL
) paused WHERE due > 0 ORDER BY due DESC, name LIMIT {MAX_QUEUES}
"""


class QueuePaused(Check):
    """Paused queues with due jobs."""

    code = "queue_paused"
    rank = 50
    button = Button("Resume", "tailrace_jobs.pause_queue")

    def causes(self, facts: Facts) -> list[Cause]:
        return [_cause(*row) for row in query(_PAUSED, cap=MAX_COUNTED)]

    def mend(self, user: User, subject: str) -> str:
        with transaction.atomic(using=home()):
            if not resume(subject, user.get_username()):
                return f"{subject} is not paused."
            audit.record(user, Queue, "resumed", [(subject, subject)])
        return f"{subject}: resumed."


def _cause(
    name: str, by: str, at: datetime, reason: str, until: datetime | None, due: int
) -> Cause:
    verb = "waits" if due == 1 else "wait"
    by_whom = f"by {by} " if by else ""
    return Cause(
        f"{name} was paused {by_whom}at {when(at)}{f', until {when(until)}' if until else ''};"
        f" {count(due, 'due job', MAX_COUNTED)} {verb}.",
        advice=f"Reason: {reason}" if reason else "",
        subject=name,
        since=at,
        link=admin_link(f"Queue {name}", "queue_change", name),
    )
