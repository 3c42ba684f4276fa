"""Handlers whose effect is a line in CHAOS_EFFECTS: outside of the database, and never taken back.

CHAOS_CODE=new is the next deployment: Leaving is gone, Coming is there, and what Widened and
Broken are given has changed its shape, once compatibly and once not.
"""

import asyncio
import os
import time
from collections.abc import Sequence

from django.db import transaction
from pydantic import BaseModel, ConfigDict

from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Retry
from tests.chaos.effects import effect
from tests.chaos.event_types import NEW_CODE, Echoed, Published


def happen(job: ClaimedJob) -> None:
    """Have the effect of this job."""
    effect(job.handler.name, job.id, job.claim_no)


class _Chaos(Handler):
    on = [Published]
    max_attempts = 20  # a worker's death is charged as an attempt, and there are many here
    backoff = Backoff(1, 2)
    claim_timeout = 5


class _Single(_Chaos):
    def handle(self, job: ClaimedJob) -> None:
        happen(job)


def _every(step: int, rest: int, event: Recorded) -> bool:
    return event.raw_payload["number"] % step == rest


class One(_Single):
    """One by one."""

    name = "chaos.one"


class Together(_Chaos):
    """In batches."""

    name = "chaos.together"
    batch_size = 50

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        for job in jobs:
            happen(job)


class Fair(_Single):
    """From the clients in turn."""

    name = "chaos.fair"
    fair = True

    def lane(self, event: Recorded, routing_key: str) -> str:
        return event.subject


class Ordered(Fair):
    """One per client at a time, in the order of publishing."""

    name = "chaos.ordered"
    fair = False
    ordered = True


class Slow(_Single):
    """Long enough to be killed in the midst of it."""

    name = "chaos.slow"
    max_running = 4

    def wants(self, event: Recorded) -> bool:
        return _every(10, 0, event)

    def handle(self, job: ClaimedJob) -> None:
        time.sleep(0.4)
        happen(job)


class Flaky(_Single):
    """Fails at first."""

    name = "chaos.flaky"

    def wants(self, event: Recorded) -> bool:
        return _every(10, 1, event)

    def handle(self, job: ClaimedJob) -> None:
        if job.attempt == 1:
            raise Retry("as always at first")
        happen(job)


class Ring(_Single):
    """Publishes one event, however often it runs."""

    name = "chaos.ring"

    def wants(self, event: Recorded) -> bool:
        return _every(5, 2, event)

    def handle(self, job: ClaimedJob) -> None:
        assert job.event
        payload = {key: job.event.raw_payload[key] for key in ("client", "number")} | WORDS
        publish(NewEvent(Echoed, payload, source="chaos-echo", source_id=str(job.event.id)))
        happen(job)


class Echo(_Single):
    """Hears what Ring publishes."""

    name = "chaos.echo"
    on = [Echoed]


class Split(_Single):
    """Owes two jobs more, in one transaction with each other, once per event."""

    name = "chaos.split"

    def wants(self, event: Recorded) -> bool:
        return _every(10, 3, event)

    def handle(self, job: ClaimedJob) -> None:
        assert job.event
        number = job.event.raw_payload["number"]
        with transaction.atomic():
            enqueue(Widened, {"number": number} | WORDS, event_id=job.event.id)
            enqueue(Broken, {"number": number} | NUMBERED, event_id=job.event.id)
        happen(job)


class Timed(_Single):
    """By the schedules of the run, one for each catch-up policy."""

    name = "chaos.slot"
    on = ()


class Nap(_Chaos):
    """Waits from 0 to 5 s, with others."""

    name = "chaos.nap"
    on = ()
    concurrency = 100

    async def handle(self, job: ClaimedJob) -> None:
        await asyncio.sleep(job.id % 50 / 10)
        happen(job)


class Long(_Single):
    """Takes as long as the run wants it to."""

    name = "chaos.long"
    on = ()

    def handle(self, job: ClaimedJob) -> None:
        while not os.path.exists(os.environ["CHAOS_LONG_CALLS_END"]):
            time.sleep(0.1)
        happen(job)


class Part(_Single):
    """A part of a flow: long enough to be killed in the midst of it."""

    name = "chaos.part"
    on = ()

    def handle(self, job: ClaimedJob) -> None:
        time.sleep(job.id % 5 / 20)
        happen(job)


class Callback(_Single):
    """Runs after the parts of its flow."""

    name = "chaos.callback"
    on = ()


WORDS = {"words": ["new"]} if NEW_CODE else {}
NUMBERED = WORDS or {"text": "old"}


class Widened(_Single):
    """Its new payload has a word more, which the old code ignores and the new one can miss."""

    name = "chaos.widened"
    on = ()

    class Payload(BaseModel):
        number: int
        if NEW_CODE:
            words: list[str] = []


class Broken(_Single):
    """Old and new code cannot read each other's payloads."""

    name = "chaos.broken"
    on = ()

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid")
        number: int
        if NEW_CODE:
            words: list[str]
        else:
            text: str


if NEW_CODE:

    class Coming(_Single):
        """New: the sweeper adds jobs for the events of the last hour, too."""

        name = "chaos.coming"
        backfill = 3600

else:

    class Leaving(_Single):
        """Not in the next deployment."""

        name = "chaos.leaving"

        def wants(self, event: Recorded) -> bool:
            return _every(10, 4, event)
