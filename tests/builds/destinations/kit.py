"""Events to send and their jobs, for the tests of the buses."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tailrace.domains.builds.destinations.base import Bus, Message
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.destinations.delivery import DeliveryResult
from tailrace.jobs.models import Job

NOTIFY = "builds.notify_backend"
SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def commits(count: int = 1, **more: Any) -> list[Recorded]:
    """Publish commits to home:alice/hello, revisions 1, 2, …"""
    payload = {"project": "home:alice", "package": "hello", "user": "bob", **more}
    return publish([NewEvent("builds.commit", payload | {"rev": str(n + 1)}) for n in range(count)])


def messages(count: int = 1) -> list[Message]:
    return [
        Message(n, f"opensuse.obs.package.commit.n{n}", b'{"rev":"%d"}' % n)
        for n in range(1, count + 1)
    ]


def jobs_of(events: Sequence[Recorded], key: str = "") -> list[Job]:
    """Return the jobs of these events, for one destination or for all."""
    jobs = Job.objects.filter(handler=NOTIFY, event__in=[event.id for event in events])
    return list((jobs.filter(routing_key=key) if key else jobs).order_by("id"))


def states(events: Sequence[Recorded], key: str = "") -> list[str]:
    return [job.state for job in jobs_of(events, key)]


def delivered(bus: Bus, messages: Sequence[Message]) -> list[DeliveryResult]:
    """Deliver these at once; return their results."""

    async def deliver() -> list[DeliveryResult]:
        return await asyncio.gather(*map(bus.deliver, messages))

    return asyncio.run(deliver())
