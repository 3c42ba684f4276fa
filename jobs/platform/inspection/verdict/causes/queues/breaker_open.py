from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.destinations import breaker
from tailrace.jobs.models import Breaker
from tailrace.jobs.platform.inspection.display.formatting import count, when
from tailrace.jobs.platform.inspection.verdict.cause import Button, Cause, Check, Facts, admin_link
from tailrace.jobs.runtime import audit

RECENT_SECONDS = 3600
"""Destinations whose last failure is older are not reported: their state is unknown."""
MAX_NAMED = 5

_OPEN = f"""
SELECT name, failures, failed_at, open_until, open_until > {clock.NOW}, last_error
FROM tailrace_jobs_breaker
WHERE open_until IS NOT NULL AND failures > 0
  AND failed_at > {clock.NOW} - make_interval(secs => {RECENT_SECONDS})
ORDER BY failures DESC, name LIMIT 200
"""


class BreakerOpen(Check):
    """Destinations whose circuit breaker is open or half-open."""

    code = "breaker_open"
    rank = 70
    permission = "tailrace_jobs.view_breaker"
    button = Button("Try it now", "tailrace_jobs.close_breaker")

    def causes(self, facts: Facts) -> list[Cause]:
        rows = query(_OPEN)
        causes = [_cause(*row) for row in rows[:MAX_NAMED]]
        if (more := len(rows) - MAX_NAMED) > 0:
            words = f"{count(more, 'more destination')} cannot be reached."
            causes.append(Cause(words, link=admin_link("Breakers", "breaker_changelist")))
        return causes

    def mend(self, user: User, subject: str) -> str:
        with transaction.atomic(using=home()):
            if not Breaker.objects.filter(name=subject, open_until__isnull=False).exists():
                return "The circuit breaker is already closed."
            breaker.record_success(subject)
            audit.record(user, Breaker, "closed", [(subject, subject)])
        return f"{subject}: the circuit breaker is closed; jobs are sent again when they are due."


def _cause(
    name: str, failures: int, failed_at: datetime, until: datetime, is_open: bool, error: str
) -> Cause:
    queue = name.partition(":")[0]
    state = f"open until {when(until)}" if is_open else "half-open: the next job tests it"
    return Cause(
        f"A destination of {queue} cannot be reached: {count(failures, 'failure')} in a row, the"
        f" last {when(failed_at)}. Its circuit breaker is {state}.",
        subject=name,
        since=failed_at,
        private=f"{name}: {error}",
        link=admin_link("Its circuit breaker", "breaker_change", name),
    )
