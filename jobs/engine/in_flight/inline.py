"""Work on an async handler's queue in the calling thread: for tests and commands, not for workers.

What is claimed together runs together; sync code of the handler runs in the calling thread, on its
connections.
"""

import asyncio
import contextvars
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from asgiref.sync import async_to_sync

from tailrace.jobs.engine.claiming.claim import Limits, claim
from tailrace.jobs.engine.in_flight.call import Call, run
from tailrace.jobs.engine.run import failure_report
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.handler import ClaimedJob, Handler


def one_round(handler: Handler, limits: Limits) -> Counter[str] | None:
    """Claim what may be in flight at once, run it and settle it; return how many jobs ended in
    which state, None if none was due."""
    jobs = claim(handler, limits, handler.concurrency)
    if not jobs:
        return None
    verdicts = run_all(jobs)
    states = settle(verdicts)
    for verdict in verdicts:
        if verdict.job.id in states:
            failure_report.report(verdict)
    return Counter(states.values())


def run_all(jobs: Sequence[ClaimedJob]) -> list[Verdict]:
    """Run claimed jobs of one handler together; return the verdicts on them, in their order."""
    return async_to_sync(_run_all)([Call(job) for job in jobs])


async def _run_all(calls: Sequence[Call]) -> list[Verdict]:
    new_places = _places(calls[0].handler)
    places: defaultdict[str, asyncio.Semaphore] = defaultdict(new_places)
    running = [
        asyncio.create_task(
            _run_in_place(call, places[call.handler.destination(call.job)]),
            context=contextvars.Context(),
        )
        for call in calls
    ]
    return list(await asyncio.gather(*running))


def _places(handler: Handler) -> Callable[[], asyncio.Semaphore]:
    return lambda: asyncio.Semaphore(handler.per_destination or handler.concurrency)


async def _run_in_place(call: Call, places: asyncio.Semaphore) -> Verdict:
    async with places:
        task = asyncio.create_task(run(call))
        _done, late = await asyncio.wait([task], timeout=call.time_limit)
        if late:
            call.timed_out = True
            task.cancel()
        return await task
