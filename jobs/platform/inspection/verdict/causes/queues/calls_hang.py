from tailrace.jobs.platform.inspection.queues.hanging import (
    SHORTEST_SECONDS,
    HangingCalls,
    hanging_calls,
)
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, admin_link

MAX_NAMED = 5


class CallsHang(Check):
    """Calls of async handlers that run far longer than usual, while other jobs wait for them."""

    code = "calls_hang"
    rank = 38
    permission = "tailrace_jobs.view_breaker"

    def causes(self, facts: Facts) -> list[Cause]:
        names = {
            job.handler
            for job in facts.running
            if job.begun and not job.occupies and job.seconds >= SHORTEST_SECONDS
        }
        return [_cause(calls) for calls in hanging_calls(sorted(names))[:MAX_NAMED]]


def _cause(calls: HangingCalls) -> Cause:
    return Cause(
        f"Calls of {calls.handler} to a destination hang: {calls.words}.",
        subject=calls.handler,
        since=calls.since,
        advice="Each call ends at the time limit of its handler, and is tried again later. If the"
        " destination is down, pause the queue; give the calls of the handler a timeout.",
        private=f"The destination is {calls.destination}." if calls.destination else "",
        link=admin_link(f"Queue {calls.handler}", "queue_change", calls.handler),
    )
