"""The card of protection on the overview: scans by plan, missing settings, providers, and parked
removals."""

from contextlib import suppress
from typing import Any, ClassVar

from django.urls import NoReverseMatch, reverse

from tailrace.db import clock
from tailrace.db.query import database_now, query
from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.platform import checks
from tailrace.domains.protection.services.scanning.requests import OURS
from tailrace.jobs.models import Breaker, Bucket
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD
from tailrace.jobs.platform.pages.panel import Panel
from tailrace.subscriptions.models import PlanJob

PROVIDERS = "protection:"
"""Prefix of the names of the providers' breakers and buckets."""
BUDGET = ":rate"
MAX_ROWS = 50
MAX_COUNT = 10_000


class Protection(Panel):
    """The delays of each plan's scans, and the state of the providers."""

    title = "Protection"
    order = 27
    template = "tailrace/protection/panels/protection.html"
    wide: ClassVar[bool] = True
    permission = "tailrace_protection.view_alert"

    def context(self) -> dict[str, Any]:
        missing = missing_settings()
        parked = RemovalRequest.objects.filter(state=RemovalState.NEEDS_PERSON)
        return {
            "alert": bool(missing),
            "missing": missing,
            "scans": scans_by_plan(),
            "providers": providers(),
            "parked": len(parked.order_by().values_list("pk")[:MAX_COUNT]),
            "parked_list": self._parked_list(),
            "shows_errors": self.user.has_perm(VIEW_JOB_PAYLOAD),
        }

    def _parked_list(self) -> str:
        """Return the URL of the list of parked removals, if the user may open it."""
        if self.user.has_perm("tailrace_protection.view_removalrequest"):
            with suppress(NoReverseMatch):
                page = reverse("admin:tailrace_protection_removalrequest_changelist")
                return f"{page}?state=needs_person"
        return ""


# Due jobs are read with the index of due jobs, schedules with the index of their next runs.
_WAITING = f"""
WITH names AS (SELECT unnest(%(handlers)s::text[]) AS handler), waiting AS (
  SELECT job.handler, (job.payload ->> 'account')::bigint AS account, job.due_at
  FROM names CROSS JOIN LATERAL (
    SELECT handler, payload, due_at FROM tailrace_jobs_job
    WHERE handler = names.handler AND state = 'pending' AND due_at <= {clock.NOW}
    LIMIT %(limit)s) job
  UNION ALL
  SELECT schedule.handler, (schedule.payload ->> 'account')::bigint, schedule.next_run_at
  FROM (
    SELECT handler, payload, next_run_at FROM tailrace_jobs_schedule
    WHERE enabled AND next_run_at <= {clock.NOW} ORDER BY next_run_at LIMIT %(limit)s) schedule
  WHERE schedule.handler IN (SELECT handler FROM names)
)
SELECT s.plan_id, waiting.handler, count(*),
       extract(epoch FROM {clock.NOW} - min(waiting.due_at))::float8
FROM waiting JOIN tailrace_subscriptions_plansubscription s ON s.account_id = waiting.account
GROUP BY 1, 2
"""


def scans_by_plan() -> list[dict[str, Any]]:
    """Return the jobs of the plans, each with the number of due runs that have not begun (`due`)
    and the delay of the oldest one in seconds (`late`; None if no run is due)."""
    jobs = PlanJob.objects.filter(handler__startswith=OURS).select_related("plan")
    rows = list(jobs.order_by("plan_id", "handler")[:MAX_ROWS])
    handlers = sorted({row.handler for row in rows})
    waiting = query(_WAITING, handlers=handlers, limit=MAX_COUNT) if rows else []
    late = {(plan, handler): (count, seconds) for plan, handler, count, seconds in waiting}
    delays = (late.get((row.plan_id, row.handler), (0, None)) for row in rows)
    return [
        {"job": row, "due": count, "late": seconds}
        for row, (count, seconds) in zip(rows, delays, strict=True)
    ]


def missing_settings() -> list[dict[str, Any]]:
    """Return the settings that are missing for scans, with the subscribed plans that need them."""
    lines = [
        {"missing": setting, "plans": checks.plans_with_scan(setting.handler)}
        for setting in checks.missing_settings()
    ]
    return [line for line in lines if line["plans"]]


def providers() -> list[dict[str, Any]]:
    """Return the providers that were queried recently, with their breakers and budgets."""
    now = database_now()
    rows = Breaker.objects.filter(name__startswith=PROVIDERS)
    breakers = {row.name: row for row in rows[:MAX_ROWS]}
    buckets = Bucket.objects.filter(name__startswith=PROVIDERS, name__endswith=BUDGET)
    budgets = {row.name.removesuffix(BUDGET): row for row in buckets.order_by("name")[:MAX_ROWS]}
    return [
        {
            "name": name.removeprefix(PROVIDERS),
            "breaker": breakers.get(name),
            "state": breakers[name].state_at(now) if name in breakers else "closed",
            "bucket": budgets.get(name),
            # Requests that are reserved in advance can make the balance negative.
            "left": max(0.0, budgets[name].tokens) if name in budgets else None,
        }
        for name in sorted(breakers.keys() | budgets.keys())
    ]
