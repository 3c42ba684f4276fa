"""The card of protection on the overview: scans by plan, settings that lack, providers, and parked
removals."""

from typing import Any, ClassVar

from django.urls import NoReverseMatch, reverse

from tailrace.db import clock
from tailrace.db.query import database_now, query
from tailrace.domains.protection import unset
from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.scanning.requests import OURS
from tailrace.jobs.models import Breaker, Bucket
from tailrace.jobs.overview.panel import Panel
from tailrace.jobs.visibility import VIEW_JOB_PAYLOAD
from tailrace.subscriptions.models import PlanJob

PROVIDERS = "protection:"
"""The breakers and buckets of providers begin so."""
BUDGET = ":rate"
MAX_ROWS = 50
MAX_COUNT = 10_000


class Protection(Panel):
    """How late the scans of each plan are, and whether the providers answer."""

    title = "Protection"
    order = 27
    template = "tailrace/protection/panels/protection.html"
    wide: ClassVar[bool] = True
    permission = "tailrace_protection.view_alert"

    def context(self) -> dict[str, Any]:
        lacking = unset_and_owed()
        parked = RemovalRequest.objects.filter(state=RemovalState.NEEDS_PERSON)
        return {
            "alert": bool(lacking),
            "lacking": lacking,
            "scans": scans_by_plan(),
            "providers": providers(),
            "parked": len(parked.order_by().values_list("pk")[:MAX_COUNT]),
            "parked_list": self._parked_list(),
            "shows_errors": self.user.has_perm(VIEW_JOB_PAYLOAD),
        }

    def _parked_list(self) -> str:
        """Return the address of the parked removals, if there is one that the user may open."""
        if not self.user.has_perm("tailrace_protection.view_removalrequest"):
            return ""
        try:
            page = reverse("admin:tailrace_protection_removalrequest_changelist")
            return f"{page}?state=needs_person"
        except NoReverseMatch:
            return ""


# The jobs that wait are read by the index of due jobs, and the schedules by that of their times.
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
    """Return for each job of each plan how many are due and have not begun, and since when."""
    jobs = PlanJob.objects.filter(handler__startswith=OURS).select_related("plan")
    rows = list(jobs.order_by("plan_id", "handler")[:MAX_ROWS])
    handlers = sorted({row.handler for row in rows})
    waiting = query(_WAITING, handlers=handlers, limit=MAX_COUNT) if rows else []
    late = {(plan, handler): (count, seconds) for plan, handler, count, seconds in waiting}
    lines = []
    for row in rows:
        count, seconds = late.get((row.plan_id, row.handler), (0, None))
        lines.append({"job": row, "due": count, "late": seconds})
    return lines


def unset_and_owed() -> list[dict[str, Any]]:
    """Return each setting that lacks for a scan, with the plans whose subscribers are owed it."""
    lines = [{"lack": lack, "plans": unset.plans_that_owe(lack.handler)} for lack in unset.unset()]
    return [line for line in lines if line["plans"]]


def providers() -> list[dict[str, Any]]:
    """Return each provider that was asked of late: its breaker, and what its budget has left."""
    now = database_now()
    breakers = {
        row.name: row for row in Breaker.objects.filter(name__startswith=PROVIDERS)[:MAX_ROWS]
    }
    buckets = Bucket.objects.filter(name__startswith=PROVIDERS, name__endswith=BUDGET)
    left = {row.name.removesuffix(BUDGET): row for row in buckets.order_by("name")[:MAX_ROWS]}
    return [
        {
            "name": name.removeprefix(PROVIDERS),
            "breaker": breakers.get(name),
            "state": breakers[name].state_at(now) if name in breakers else "closed",
            "bucket": left.get(name),
            # Places that are taken ahead of their time make it less than nothing.
            "left": max(0.0, left[name].tokens) if name in left else None,
        }
        for name in sorted(breakers.keys() | left.keys())
    ]
