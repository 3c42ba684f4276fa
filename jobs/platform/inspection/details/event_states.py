"""The state of an event, derived from the states of its jobs."""

from collections.abc import Collection
from typing import Any

from django.db.models import Case, Count, Q, QuerySet, Value, When
from django.db.models.lookups import GreaterThan

from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import LIVE, State

NO_JOBS, FAILURES, IN_PROGRESS, SETTLED = "no jobs", "has failures", "in progress", "settled"


def with_event_state(jobs: QuerySet[Job]) -> QuerySet[Any, Any]:
    """Return the state of each event of these jobs as `event_state`."""
    failed = Count("pk", filter=Q(state=State.FAILED))
    live = Count("pk", filter=Q(state__in=LIVE))
    return (
        jobs.order_by()
        .values("event")
        .annotate(
            event_state=Case(
                When(Q(GreaterThan(failed, 0)), then=Value(FAILURES)),
                When(Q(GreaterThan(live, 0)), then=Value(IN_PROGRESS)),
                default=Value(SETTLED),
            )
        )
    )


def event_states(ids: Collection[int], handlers: str = "") -> dict[int, str]:
    """Return the state of each of these events that has jobs of handlers with this prefix."""
    jobs = Job.objects.filter(event__in=ids)
    if handlers:
        jobs = jobs.filter(handler__startswith=handlers)
    return dict(with_event_state(jobs).values_list("event", "event_state"))
