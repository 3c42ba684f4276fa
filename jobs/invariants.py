"""Invariants: what should be true of the stored state, how to find where it is not, and a repair.

Write a subclass in `invariants.py` of any installed app. These are the core's own.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db import connection
from django.db.models import Exists, OuterRef

from events import clock
from jobs import backfill, continuation, dead, registry, rescue, schedules, tick
from jobs.models import Job, Schedule
from jobs.states import FINISHED, State


class Invariant:
    """Something that should be true. `find` is bounded and indexed; `repair` is safe to repeat.

    The sweeper runs both in one transaction, one sweep per invariant at a time.
    """

    name: ClassVar[str] = ""
    every: ClassVar[float] = 15
    """Seconds between two checks."""
    limit: ClassVar[int] = 1000
    """Rows per check."""

    def find(self) -> Sequence[Any]:
        """Return where it does not hold, at most `limit` of them."""
        raise NotImplementedError

    def repair(self, found: Sequence[Any]) -> int:
        """Make it hold there; return how many were repaired."""
        raise NotImplementedError

    @classmethod
    def description(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n\n")[0]


def everything() -> list[Invariant]:
    """Return one of each invariant of all installed apps, by name."""
    return [cls() for cls in sorted(registry.named(Invariant), key=lambda cls: cls.name)]


class LeasesHold(Invariant):
    """A running job's lease has not expired."""

    name = "jobs.leases_hold"

    def find(self) -> Sequence[Any]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM jobs_job WHERE state = 'running'"
                f" AND lease_until < {clock.NOW} LIMIT %(limit)s",
                clock.params() | {"limit": self.limit},
            )
            return [row[0] for row in cursor.fetchall()]

    def repair(self, found: Sequence[Any]) -> int:
        return rescue.rescue(self.limit)


class DueQueuesAreAwake(Invariant):
    """A queue with due work has been told so, and somebody has begun on it since."""

    name = "jobs.due_queues_are_awake"

    def find(self) -> Sequence[Any]:
        return tick.asleep()

    def repair(self, found: Sequence[Any]) -> int:
        return len(tick.wake_due())


class NoneWaitsForFinished(Invariant):
    """A waiting job waits for a job that is not finished."""

    name = "jobs.none_waits_for_finished"

    def find(self) -> Sequence[Any]:
        waiting = Job.objects.filter(state=State.WAITING, after__state__in=FINISHED)
        return list(waiting.values_list("after_id", flat=True)[: self.limit])

    def repair(self, found: Sequence[Any]) -> int:
        return continuation.release(sorted(set(found)))


class WaitsForSomething(Invariant):
    """The job that a waiting job waits for exists."""

    name = "jobs.waits_for_something"
    every = 300

    def find(self) -> Sequence[Any]:
        parent = Job.objects.filter(pk=OuterRef("after_id"))
        waiting = Job.objects.filter(~Exists(parent), state=State.WAITING, after__isnull=False)
        return list(waiting.values_list("id", flat=True)[: self.limit])

    def repair(self, found: Sequence[Any]) -> int:
        waiting = Job.objects.filter(pk__in=found, state=State.WAITING)
        return waiting.update(
            state=State.CANCELLED, error="the job it waited for is gone", finished_at=clock.now()
        )


class HandlersExist(Invariant):
    """The handler of a pending job exists."""

    name = "jobs.handlers_exist"

    def find(self) -> Sequence[Any]:
        return dead.orphaned(self.limit)

    def repair(self, found: Sequence[Any]) -> int:
        return dead.bury(list(found))


class EventsHaveTheirJobs(Invariant):
    """An event within a handler's backfill window has the jobs that the handler wants."""

    name = "jobs.events_have_their_jobs"

    def find(self) -> Sequence[Any]:
        return backfill.behind()

    def repair(self, found: Sequence[Any]) -> int:
        return sum(backfill.advance(name) for name in found)


class SchedulesKeepUp(Invariant):
    """A schedule's next slot lies less than a minute in the past."""

    name = "jobs.schedules_keep_up"

    def find(self) -> Sequence[Any]:
        late = Schedule.objects.filter(enabled=True, next_run_at__lt=clock.now() - schedules.LATE)
        return list(late.order_by("next_run_at").values_list("id", flat=True)[: self.limit])

    def repair(self, found: Sequence[Any]) -> int:
        return schedules.run_due(self.limit)
