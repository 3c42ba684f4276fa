"""Drain the queue of an async handler in the calling thread: for tests and commands, not workers.

Jobs that are claimed together run together. Sync code of the handler runs in the calling thread, on
its connections.
"""

import asyncio
import contextvars
from collections import Counter, defaultdict
from collections.abc import Sequence

from asgiref.sync import async_to_sync

from tailrace.jobs.engine.claiming.claim import Limits, claim
from tailrace.jobs.engine.in_flight.call import Call, run
from tailrace.jobs.engine.run.failure import report
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.handler import ClaimedJob, Handler


def one_round(handler: Handler, limits: Limits) -> Counter[str] | None:
    """Claim, run and settle up to `concurrency` jobs. Return the number of jobs by state, or None
    if no job was due."""
    jobs = claim(handler, limits, handler.concurrency)
    if not jobs:
        return None
    verdicts = run_all(jobs)
    states = settle(verdicts)
    for verdict in verdicts:
        if verdict.job.id in states:
            report(verdict)
    return Counter(states.values())


def run_all(jobs: Sequence[ClaimedJob]) -> list[Verdict]:
    """Run claimed jobs of one handler together; return their verdicts in the same order."""
    return async_to_sync(_run_all)([Call(job) for job in jobs])


async def _run_all(calls: Sequence[Call]) -> list[Verdict]:
    limit = calls[0].handler.per_destination or calls[0].handler.concurrency
    semaphores: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(limit))
    running = [
        asyncio.create_task(
            _run_with_limits(call, semaphores[call.handler.destination(call.job)]),
            context=contextvars.Context(),
        )
        for call in calls
    ]
    return list(await asyncio.gather(*running))


async def _run_with_limits(call: Call, semaphore: asyncio.Semaphore) -> Verdict:
    async with semaphore:
        task = asyncio.create_task(run(call))
        _done, late = await asyncio.wait([task], timeout=call.time_limit)
        if late:
            call.timed_out = True
            task.cancel()
        return await task
