"""Handlers that do what their payload says, or what a test of the same process has scripted."""

import asyncio
import inspect
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from pydantic import BaseModel, ConfigDict, Field

from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.destinations.delivery import SENT, DeliveryResult
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.handler import (
    Backoff,
    Cancel,
    ClaimedJob,
    Handler,
    Permanent,
    Retry,
    Skip,
    Snooze,
)
from tests.sandbox.event_types import Bought, Happened, SandboxEvent
from tests.sandbox.models import Effect
from tests.sandbox.plan_handlers import PlanHome, PlanReport, PlanScan
from tests.sandbox.record_log import RecordLog
from tests.servers.slow import get

__all__ = ["PlanHome", "PlanReport", "PlanScan", "RecordLog"]

script: dict[str, Callable[[Any], Any]] = {}
"""By handler name: what a test of this process wants it to do instead."""


class Work(BaseModel):
    model_config = ConfigDict(extra="forbid")
    do: str = "nothing"
    seconds: float = 0
    note: str = ""


def effect(job: ClaimedJob, note: str = "") -> None:
    Effect.objects.create(
        handler=job.handler.name,
        job_id=job.id,
        claim_no=job.claim_no,
        note=note,
        process=os.getpid(),
    )


def act(job: ClaimedJob) -> Any:
    """Do what the payload says."""
    if job.handler.name in script:
        return script[job.handler.name](job)
    work = job.payload if isinstance(job.payload, Work) else Work()
    effect(job, work.note)
    match work.do:
        case "raise":
            raise RuntimeError(work.note or "as asked")
        case "retry":
            raise Retry(work.note, after=work.seconds)
        case "snooze":
            raise Snooze(work.note, seconds=work.seconds)
        case "skip":
            raise Skip(work.note)
        case "cancel":
            raise Cancel(work.note)
        case "permanent":
            raise Permanent(work.note)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            time.sleep(work.seconds)
        case "sleep through":  # whatever is raised in it
            until = time.monotonic() + work.seconds
            while time.monotonic() < until:
                try:
                    while time.monotonic() < until:
                        time.sleep(0.1)
                except BaseException:  # noqa: S112
                    continue
        case "sleep politely":
            until = time.monotonic() + work.seconds
            while time.monotonic() < until and not job.shutting_down():
                time.sleep(0.1)
        case "wait":  # until there is a file of this name
            while not os.path.exists(work.note):
                time.sleep(0.02)
        case "publish":
            publish(NewEvent(Happened, {"who": work.note}))
        case "cut":
            cut_own_connection()
        case "begin":  # its own transaction, and fail in it
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("UPDATE tailrace_jobs_job SET progress_note = 'uncommitted'")
            raise RuntimeError("behind its own BEGIN")
    return None


def cut_own_connection() -> None:
    """Let PostgreSQL end the connection that this process works on, as a restart would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


class Working(Handler):
    """Takes jobs one by one."""

    name = "test.work"
    Payload = Work
    batch_size = 10
    max_attempts = 3
    backoff = Backoff(60, 300)
    claim_timeout = 60

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)


class Report(BaseModel):
    """One field of each kind that a form has."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    title: str = Field(min_length=2, max_length=40)
    """What stands above the report."""
    month: date | None = None
    size: Literal["short", "long"] = "short"
    pages: int = Field(5, ge=1, le=100)
    rate: float | None = None
    urgent: bool = False
    tags: list[str] = []
    colours: dict[str, int] = {}


class Requested(Handler):
    """Make a report that a user requests."""

    name = "test.requested"
    Payload = Report
    request_permission = "tailrace_jobs.add_job"

    def handle(self, job: ClaimedJob) -> Any:
        if self.name in script:
            return script[self.name](job)
        return {"title": job.payload.title}


class RequestedNewest(Requested):
    """Of several requests with one unique key the newest counts."""

    name = "test.requested_newest"
    merge = "replace"


class Other(Working):
    """A second queue of the same kind."""

    name = "test.other"


class Once(Working):
    """Has no second attempt."""

    name = "test.once"
    max_attempts = 1


class Poison(Working):
    """Short leases, for what kills its worker."""

    name = "test.poison"
    claim_timeout = 6
    max_attempts = 2
    backoff = Backoff(1)


class Batch(Handler):
    """Takes jobs together."""

    name = "test.batch"
    Payload = Work
    batch_size = 10
    max_attempts = 3
    backoff = Backoff(60)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> Any:
        if self.name in script:
            return script[self.name](jobs)
        for job in jobs:
            act(job)
        return None


class BatchByKey(Batch):
    """Takes jobs with one batch key together: one, three or five of them."""

    name = "test.batch_by_key"
    batch_size = 5
    fair = True

    def batch_sizes(self) -> dict[str, int]:
        return {"alone": 1, "threes": 3}


class Fair(Working):
    """Takes jobs from the lanes in turn."""

    name = "test.fair"
    fair = True


class Ordered(Working):
    """One job per lane at a time."""

    name = "test.ordered"
    ordered = True


class Log(Handler):
    """Hears Happened and its subclass."""

    name = "test.log"
    on = [Happened]

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)


class Family(Handler):
    """Hears the whole family, in lanes, later, at priority 2."""

    name = "test.family"
    on = [SandboxEvent]
    fair = True
    delay = 30
    priority = 2

    def lane(self, event: Recorded, routing_key: str) -> str:
        return event.subject

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)


class Keyed(Handler):
    """One job per tag of an event that somebody did."""

    name = "test.keyed"
    on = [Happened]

    def wants(self, event: Recorded) -> bool:
        return event.payload.who != "nobody"

    def routing_keys(self, event: Recorded) -> list[str]:
        return event.payload.tags

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)


class Debounced(Handler):
    """One unstarted job per subject, however often it happened."""

    name = "test.debounced"
    on = [Happened]
    delay = 60

    def wants(self, event: Recorded) -> bool:
        return bool(event.subject)

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        return event.subject

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)


async def act_async(job: ClaimedJob) -> Any:
    """Do what the payload says, in an event loop; `get`: send a request to the URL `note`."""
    if job.handler.name in script:
        result = script[job.handler.name](job)
        return await result if inspect.isawaitable(result) else result
    match job.payload.do:
        case "sleep":
            await asyncio.sleep(job.payload.seconds)
        case "get":
            await get(job.payload.note)
        case "block":
            time.sleep(job.payload.seconds)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "cut":
            await sync_to_async(cut_own_connection)()
    await sync_to_async(effect)(job, job.payload.note)
    return None


class Waiting(Handler):
    """Waits for others, a hundred calls at a time in each process."""

    name = "test.waiting"
    Payload = Work
    concurrency = 100
    max_attempts = 3
    backoff = Backoff(60)

    async def handle(self, job: ClaimedJob) -> Any:
        return await act_async(job)


class WaitingShortly(Waiting):
    """With a short lease and a short time limit."""

    name = "test.waiting_shortly"
    max_attempts = 2
    claim_timeout = 3
    time_limit = 0.5


class WaitingFairly(Waiting):
    """Each lane is a destination with a few places."""

    name = "test.waiting_fairly"
    concurrency = 20
    fair = True
    per_destination = 3


class WaitingByKey(Waiting):
    """Each routing key is a destination with a few places; jobs are claimed in one line."""

    name = "test.waiting_by_key"
    concurrency = 20
    per_destination = 3


class WaitingInOrder(Waiting):
    """One call per lane at a time."""

    name = "test.waiting_in_order"
    ordered = True


class Sending(DestinationHandler[str]):
    """Sends the routing key to its lane, as `sends` of the test says."""

    name = "test.sending"
    concurrency = 20
    per_destination = 4
    fair = True
    max_attempts = 3

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterable[tuple[ClaimedJob, str]]:
        for job in jobs:
            if job.routing_key == "unreadable":
                raise ValueError("this one cannot be read")
            if job.routing_key == "leaves a transaction open":
                transaction.set_autocommit(False)
            if job.routing_key == "nothing to say":
                job.skip("nothing to say")
            else:
                yield job, job.routing_key

    async def send(self, message: str) -> DeliveryResult:
        return await sends(message)


async def sent(message: str) -> DeliveryResult:
    return SENT


sends: Callable[[str], Awaitable[DeliveryResult]] = sent
"""What `Sending` does with a message; a test sets another one."""


class Parcel(BaseModel):
    parcel: str = ""


class Shipping(Handler):
    """Ships what was ordered; its own jobs are found by their parcel."""

    name = "test.ship"
    on = [Bought]
    Payload = Parcel
    searchable = ["parcel"]

    def handle(self, job: ClaimedJob) -> Any:
        return act(job)
