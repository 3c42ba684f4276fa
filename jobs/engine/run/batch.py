"""Call `handle_batch`, and find the jobs that make a batch fail.

If `handle_batch` raises, the batch is split into halves, repeatedly, until the bad job is the only
job of its group. With one bad job in a batch of n this takes about 2·log2(n) calls. When the time
of the drain ends, the jobs of the remaining groups become pending again, marked with their group,
and later drains continue with them. Each drain makes at least one call, so the search ends even if
calls are slow. An attempt is counted when a job is done or fails as the only job of a group.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from tailrace.db import connections
from tailrace.jobs.engine.run.failure import interrupted, verdict_of
from tailrace.jobs.engine.run.handler_call import guarded, run_alone, timed
from tailrace.jobs.engine.run.verdict import Verdict, completed, handed_back, outcome_of
from tailrace.jobs.handler import (
    ClaimedJob,
    Handler,
    Interrupted,
    Outcome,
    Permanent,
    TimeLimitExceeded,
)
from tailrace.jobs.runtime import shutdown
from tailrace.jobs.runtime.states import State


@dataclass(slots=True)
class Group:
    jobs: Sequence[ClaimedJob]
    mark: int | None = None
    """The mark of the group, if its batch has failed: see `Job.suspect_group`."""

    def halves(self) -> "list[Group]":
        middle = len(self.jobs) // 2
        halves = self.jobs[:middle], self.jobs[middle:]
        return [Group(half, random.getrandbits(31)) for half in halves]


def run_batch(handler: Handler, jobs: Sequence[ClaimedJob], until: float) -> Iterator[Verdict]:
    """Run the jobs together and yield a verdict on each. Only the first call may begin after
    `until`: see `drain.run`."""
    valid = []
    for job in jobs:
        if error := _payload_error(job):
            yield verdict_of(job, error)
        else:
            valid.append(job)
    groups = _groups(valid)
    is_first, any_done = True, False
    while groups:
        group = groups.pop(0)
        if not is_first and (shutdown.requested() or time.monotonic() >= until):
            yield from (handed_back(job, group.mark) for job in group.jobs)
            continue
        is_first = False
        if len(group.jobs) == 1:
            verdict = _run_suspect(handler, group, any_done)
            any_done |= verdict.exception is None
            yield verdict
            continue
        try:
            accepted = _call(handler, group.jobs)
        except Interrupted:
            yield from (interrupted(job, group.mark) for job in group.jobs)
            continue
        if accepted:
            any_done = True
            yield from map(_verdict_in_batch, group.jobs)
        else:
            groups = _in_order(group.halves() + groups)


def _groups(jobs: Sequence[ClaimedJob]) -> list[Group]:
    by_mark: dict[int | None, list[ClaimedJob]] = {}
    for job in jobs:
        by_mark.setdefault(job.suspect_group, []).append(job)
    return _in_order([Group(group, mark) for mark, group in by_mark.items()])


def _in_order(groups: Sequence[Group]) -> list[Group]:
    """Sort large groups first: most jobs of a failed batch are sound and so are done soon. Unmarked
    jobs come last, since they could delay the marked groups in each drain."""
    return sorted(groups, key=lambda group: (group.mark is None, -len(group.jobs)))


def _call(handler: Handler, jobs: Sequence[ClaimedJob]) -> bool:
    """Call the handler with several jobs; return False if it raised. Raises Interrupted."""
    for job in jobs:
        job.outcome = None
    try:
        with (
            structlog.contextvars.bound_contextvars(queue=handler.name),
            guarded(handler),
            timed(jobs),
        ):
            if outcome := outcome_of(handler.handle_batch(list(jobs))):
                raise outcome
    except (Exception, TimeLimitExceeded):
        return False
    return True


def _run_suspect(handler: Handler, group: Group, any_done: bool) -> Verdict:
    """Run the only job of a group. If it fails while other jobs succeed, it keeps its mark: later
    attempts are separate calls and need no search. If all jobs fail, the cause is elsewhere."""
    job = group.jobs[0]
    verdict = run_alone(job, lambda job: _call_with_one(handler, job))
    is_bad = verdict.exception is not None and (any_done or job.suspect_group is not None)
    if is_bad and verdict.state is State.PENDING:
        verdict.suspect_group = group.mark
    return verdict


def _call_with_one(handler: Handler, job: ClaimedJob) -> Any:
    job.outcome = None
    returned = handler.handle_batch([job])
    return returned if outcome_of(returned) else _own_result(job)


def _payload_error(job: ClaimedJob) -> Permanent | None:
    try:
        with connections.default():  # a validator may read the database
            _ = job.payload
    except Permanent as error:
        return error
    return None


def _verdict_in_batch(job: ClaimedJob) -> Verdict:
    try:
        return completed(job, _own_result(job))
    except Exception as error:
        return verdict_of(job, error)


def _own_result(job: ClaimedJob) -> Any:
    """Return the result that `handle_batch` set on this job, or raise the outcome that it set."""
    if isinstance(job.outcome, Outcome):
        raise job.outcome
    return None if job.outcome is None else job.outcome.result
