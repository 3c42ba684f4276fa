"""destination: what became of what was sent somewhere, and what that means for its jobs.

A handler whose jobs go to destinations of their own (a bus, an endpoint, a push service) asks the
destination's breaker, sends what may go, and settles with the verdicts:

    gate = breaker.gate(name)
    if gate.wait: left_alone(jobs, reason, gate.wait)
    else: settle(jobs, verdicts, gate, tell_breaker(name, gate, verdicts))

A job is charged an attempt when its destination answered it with an error, or broke down in front
of it; what only waited behind it, or tried a half-open breaker, is not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import uniform
from typing import Any

from events import clock
from jobs import breaker, operate
from jobs.claimed import ClaimedJob
from jobs.models import Job

SOON = 1.0
"""Seconds until what others held up in a batch is taken again."""
LONGEST = 3600.0
"""Seconds that a job of a destination that is away waits at most, until it is looked at again."""
RELEASED_AT_ONCE, RELEASES = 5000, 20
"""Jobs that are made due by one statement, and how often that is repeated."""
SPREAD = 1.5
"""What waits for a breaker comes back within the wait times this, not all at one moment."""


class Fate(Enum):
    """What became of a message."""

    SENT = "sent"
    FAILED = "failed"
    """The destination answered with an error; a later try may do."""
    REFUSED = "refused"
    """The destination will never take this message."""
    DOWN = "down"
    """The destination cannot be reached or used, by this message or any other."""
    UNTRIED = "untried"
    """Others failed before it; it may go at once when the destination is back."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fate of one message, and why; `after` in seconds if the destination named a wait."""

    fate: Fate
    reason: str = ""
    after: float | None = None
    result: Any = None
    """Of a message that was sent: what its job records."""


SENT = Verdict(Fate.SENT)
UNTRIED = Verdict(Fate.UNTRIED)


def tell_breaker(name: str, gate: breaker.Gate, verdicts: Sequence[Verdict]) -> float:
    """Tell the destination's breaker how it went; return for how many seconds it is open now."""
    down = [verdict for verdict in verdicts if verdict.fate is Fate.DOWN]
    errors = [verdict for verdict in verdicts if verdict.fate is Fate.FAILED]
    if down:
        return breaker.failed(name, down[0].reason, at_once=True)
    if waits := [verdict.after for verdict in errors if verdict.after is not None]:
        breaker.hold(name, errors[0].reason, max(waits))
        return max(waits)
    tried = [verdict for verdict in verdicts if verdict.fate is not Fate.UNTRIED]
    if not tried:
        return 0.0
    if len(errors) == len(tried):
        return breaker.failed(name, errors[0].reason, at_once=False, count=len(errors))
    if gate.failures or gate.one:
        breaker.succeeded(name)
    return 0.0


def settle(
    jobs: Sequence[ClaimedJob], verdicts: Sequence[Verdict], gate: breaker.Gate, wait: float
) -> None:
    """Say of each job how it ended; `wait` is what `tell_breaker` returned."""
    for job, verdict in zip(jobs, verdicts, strict=True):
        match verdict.fate:
            case Fate.SENT:
                job.complete(verdict.result)
            case Fate.REFUSED:
                job.fail(verdict.reason)
            case Fate.FAILED:
                job.retry(verdict.reason, after=verdict.after)
            case Fate.DOWN if gate.one:
                left_alone([job], verdict.reason, wait)
            case Fate.DOWN:
                job.retry(verdict.reason, after=spread(wait))
            case Fate.UNTRIED:
                left_alone([job], verdict.reason or "others failed before it", wait)


def left_alone(jobs: Iterable[ClaimedJob], reason: str, seconds: float) -> None:
    """Let the jobs wait, longer each time: a long outage costs few claims, however many wait.

    They need not wait to the end: when the destination is back, `release` makes them due.
    """
    for job in jobs:
        longer = 2 ** min(job.claim_no - 1, 10) if seconds else 1
        wait = min(max(seconds, SOON) * longer, max(seconds, LONGEST))
        job.snooze(reason, seconds=spread(wait))


def release(handler: str, lane: str | None, by: str, *, charged: bool = False) -> int:
    """Make due what was left alone in the lane (None: in all of them); return how many jobs.

    Jobs that were charged a try keep the wait before their next one, unless `charged`.
    """
    waiting = Job.objects.pending().filter(handler=handler, due_at__gt=clock.now())
    if lane is not None:
        waiting = waiting.filter(lane=lane)
    if not charged:
        waiting = waiting.filter(attempt=0)
    released = 0
    for _ in range(RELEASES):
        ids = list(waiting.values_list("id", flat=True)[:RELEASED_AT_ONCE])
        done = operate.retry_now(ids, by=by).ids if ids else []
        released += len(done)
        if not done:
            break
    return released


def spread(seconds: float) -> float:
    """Return the wait or somewhat more, different each time."""
    return seconds * uniform(1.0, SPREAD)  # noqa: S311
