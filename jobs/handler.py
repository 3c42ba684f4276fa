"""Handler: the code of one side effect. Its name is its queue's and its Celery task's name."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from events.publish import Recorded
from events.types import EventType

if TYPE_CHECKING:
    from jobs.claimed import ClaimedJob


class Backoff:
    """The waits before the second, third, … attempt, in seconds; the last one repeats."""

    def __init__(self, *seconds: float, jitter: float = 0.2) -> None:
        self.seconds = seconds or (60.0,)
        self.jitter = jitter

    def after(self, attempt: int) -> float:
        """Return the wait after the failure of attempt number `attempt` (1 is the first)."""
        wait = self.seconds[min(max(attempt, 1), len(self.seconds)) - 1]
        return wait * (1 + self.jitter * (2 * random.random() - 1))  # noqa: S311


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule by interval."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule by a cron expression of five fields, in a time zone."""

    expression: str
    tz: str = "UTC"
    catch_up: str = "latest"


LOWEST_PRIORITY = 3
NO_LANE = "-"
"""The lane of a job of a fair or ordered handler that names none."""


class Handler:
    """One kind of side effect. Write it in `handlers.py` of any installed app.

    Give either `handle(job)` or `handle_batch(jobs)`. Return = completed; raise Retry, Snooze,
    Skip, Cancel or Permanent for the rest; any other exception is retried by `backoff`.
    A job may run twice when its worker is killed, so effects are made idempotent.
    """

    name: ClassVar[str] = ""
    on: ClassVar[Sequence[type[EventType]]] = ()
    """Event types whose events owe a job, their subclasses included."""
    Payload: ClassVar[type[BaseModel] | None] = None
    """Validates the payload of a job that is enqueued or scheduled."""
    batch_size: ClassVar[int] = 10
    """Jobs per claim, whether they are handled together or one after the other."""
    max_attempts: ClassVar[int] = 4
    backoff: ClassVar[Backoff] = Backoff(60, 300, 900)
    claim_timeout: ClassVar[float] = 60
    """Seconds until a job whose worker is silent is given to another."""
    max_running: ClassVar[int | None] = None
    """Jobs that run at once, all workers together."""
    fair: ClassVar[bool] = False
    """Take jobs from the lanes in turn."""
    ordered: ClassVar[bool] = False
    """At most one running job per lane, in the order of publishing."""
    time_limit: ClassVar[float | None] = None
    """Seconds for one call; None is JOBS_TIME_LIMIT."""
    priority: ClassVar[int] = 1
    """0 (first) to 3."""
    delay: ClassVar[float] = 0
    """Seconds from publish to due; with `unique_key`, a burst becomes one job."""
    backfill: ClassVar[float | None] = None
    """Seconds: the sweeper makes missing jobs for events that are younger."""
    schedule: ClassVar[Every | Cron | None] = None

    def schedule_keys(self) -> Sequence[str]:
        """Return one routing key per schedule of this handler; none switches it off."""
        return ("",)

    def wants(self, event: Recorded) -> bool:
        """Say whether this event, of a type in `on`, owes a job at all."""
        return True

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        """Return one key per job that the event owes: per backend, per endpoint …"""
        return ("",)

    def lane(self, event: Recorded, routing_key: str) -> str:
        """Return the tenant, project or user for fairness and order."""
        return ""

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        """Return a key of which only one job stands unstarted at a time, or None."""
        return None

    def handle(self, job: "ClaimedJob") -> Any:
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    def handle_batch(self, jobs: "Sequence[ClaimedJob]") -> None:
        """Handle several jobs together; those that are not settled by name complete."""
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    @classmethod
    def in_batches(cls) -> bool:
        return cls.handle_batch is not Handler.handle_batch

    @classmethod
    def in_lanes(cls) -> bool:
        return cls.fair or cls.ordered

    @classmethod
    def description(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n\n")[0]
