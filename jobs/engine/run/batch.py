"""Call `handle_batch`, and find the job that makes a batch fail.

If `handle_batch` raises and names no job (`ClaimedJob.blamed`), the batch is split into four parts,
and these again, until the bad job is the only job of its part. With one bad job in a batch of n
this takes at most about 2·log2(n) calls. An attempt is counted when a job is done or fails as the
only job of a part.

If the call failed late, each part has half the time of the call that failed, so that all failing
calls take at most twice as long as the first. A job that does not end in its part's time is called
again with the whole time limit, after all others. A part that may be slow is the only call of its
claim: the other parts go back to the queue first, where other processes claim them.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Protocol

import structlog
from django.db import DatabaseError, InterfaceError

from tailrace.db import connections
from tailrace.environment.conf import conf
from tailrace.jobs.engine.run.failure import interrupted, verdict_of
from tailrace.jobs.engine.run.handler_call import check, guarded, run_alone, timed
from tailrace.jobs.engine.run.verdict import Verdict, completed, outcome_of
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

PARTS = 4
SLOW_SECONDS = 0.5
"""A call that fails after this is late, and a part with more time than this may be slow."""
SHORTEST_LIMIT = 0.1
LONGEST_CHAIN = 100
"""An error may be its own cause."""

STEP_SECONDS = 0.05
_WHOLE = 2**15 - 1
"""The last 15 bits of a mark are the time of its part, in steps. 0: the handler's time limit.
_WHOLE: the same, for a job that is known to be slow."""

_enough: dict[str, float] = {}
"""Seconds in which sound calls end in this process, by handler. No limit is shorter."""
_last_cut: dict[str, float] = {}
"""The shortened limit that a part reached last, by handler."""


class Claim(Protocol):
    """The jobs of a claim: `leases.held.HeldClaim`."""

    jobs: Sequence[ClaimedJob]

    def begin_group(
        self, choose: Callable[[Sequence[ClaimedJob]], Sequence[ClaimedJob]]
    ) -> Sequence[ClaimedJob]: ...

    def put_back(self, jobs: Iterable[ClaimedJob]) -> None: ...


def run_batch(
    handler: Handler, claim: Claim, until: float, give_back: Callable[[], object]
) -> Iterator[Verdict]:
    """Run the waiting jobs of the claim, by group, and yield a verdict on each. Jobs that are left
    at `until` (see `drain.run`), or behind a part that may be slow, stay in the claim. `give_back`
    makes the waiting jobs pending again."""
    search = _Search(handler, claim)
    while jobs := claim.begin_group(_next_group):
        slow = _may_be_slow(jobs[0])
        if slow:
            with suppress(DatabaseError, InterfaceError):  # the watching thread tries it again
                give_back()
        yield from search.run(jobs)
        if slow or shutdown.requested() or time.monotonic() >= until:
            break


def _next_group(waiting: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
    """Return the group to call next: large parts first, since most jobs of a failed batch are sound
    and so are done soon, and jobs that are known to be slow after them. Unmarked jobs come last,
    since they could delay the marked groups in each drain."""
    groups: dict[int | None, list[ClaimedJob]] = {}
    for job in waiting:
        groups.setdefault(job.suspect_group, []).append(job)
    return min(groups.values(), key=_turn, default=[])


def _turn(group: Sequence[ClaimedJob]) -> tuple[bool, bool, int]:
    return group[0].suspect_group is None, _steps(group[0]) == _WHOLE, -len(group)


class _Search:
    """Calls groups of a claim, and splits those that fail."""

    def __init__(self, handler: Handler, claim: Claim) -> None:
        self._handler, self._claim = handler, claim
        self._suspects = {job.id for job in claim.jobs if job.suspect_group is not None}
        self._any_done = False

    def run(self, jobs: Sequence[ClaimedJob]) -> Iterator[Verdict]:
        valid = []
        for job in jobs:
            if error := _error_before_call(job):
                yield verdict_of(job, error)
            else:
                valid.append(job)
        if len(valid) == 1:
            yield from self._run_alone(valid[0])
        elif valid:
            yield from self._run_together(valid)

    def _run_alone(self, job: ClaimedJob) -> Iterator[Verdict]:
        limit = _limit(job)
        verdict = run_alone(job, lambda job: _call_with_one(self._handler, job), limit)
        if self._is_cut(verdict.exception, limit):
            self._put_back([job], _mark(_WHOLE))
            return
        if verdict.exception is None:
            self._sound(job)
        yield self._marked(verdict, job.suspect_group)

    def _run_together(self, jobs: Sequence[ClaimedJob]) -> Iterator[Verdict]:
        limit = _limit(jobs[0])
        try:
            error = _call(self._handler, jobs, limit)
        except Interrupted:
            yield from map(interrupted, jobs)
            return
        if error is None:
            self._sound(jobs[0])
            yield from map(_verdict_in_batch, jobs)
            return
        is_cut = self._is_cut(error, limit)
        if named := _named(jobs, error):
            self._claim.put_back(job for job in jobs if job not in named)
            yield from self._end_named(named, is_cut)
        else:
            self._split(jobs)

    def _end_named(self, named: Sequence[ClaimedJob], is_cut: bool) -> Iterator[Verdict]:
        for job in named:
            mark = _mark(_WHOLE if is_cut or (job.call_took or 0.0) > SLOW_SECONDS else 0)
            if is_cut or job.blamed_for is None:
                self._put_back([job], mark)
            else:
                yield self._marked(verdict_of(job, job.blamed_for), mark)

    def _marked(self, verdict: Verdict, mark: int | None) -> Verdict:
        """Mark a job that fails while others succeed, so that its later attempts are separate calls
        and need no search. If all jobs fail, the cause is elsewhere."""
        is_slow = bool((mark or 0) & _WHOLE)
        is_bad = is_slow or self._any_done or verdict.job.id in self._suspects
        if is_bad and verdict.exception is not None and verdict.state is State.PENDING:
            verdict.suspect_group = mark
        return verdict

    def _split(self, jobs: Sequence[ClaimedJob]) -> None:
        took = jobs[0].call_took or 0.0
        steps = _steps(jobs[0])
        if steps in (0, _WHOLE):
            steps = int(took / STEP_SECONDS) if took > SLOW_SECONDS else 0
        if steps:
            steps = min(max(steps // 2, 1), _WHOLE - 1)
        ends = [number * len(jobs) // PARTS for number in range(PARTS + 1)]
        for start, end in pairwise(ends):
            self._put_back(jobs[start:end], _mark(steps))

    def _put_back(self, jobs: Sequence[ClaimedJob], mark: int) -> None:
        for job in jobs:
            job.suspect_group = mark
        self._claim.put_back(jobs)

    def _sound(self, job: ClaimedJob) -> None:
        self._any_done, name = True, self._handler.name
        _enough[name] = max(2 * (job.call_took or 0.0), 0.9 * _enough.get(name, 0.0))
        _last_cut.pop(name, None)

    def _is_cut(self, error: BaseException | None, limit: float | None) -> bool:
        """Whether a part reached its shortened limit. If two parts do, one after the other, the
        limit is too short even for sound parts."""
        if limit is None or not isinstance(error, TimeLimitExceeded):
            return False
        name = self._handler.name
        if _last_cut.get(name) == limit:
            _enough[name] = 4 * limit
        _last_cut[name] = limit
        return True


def _mark(steps: int) -> int:
    """Return a new mark for the jobs of a part: see `Job.suspect_group`."""
    return random.getrandbits(16) << 15 | steps


def _steps(job: ClaimedJob) -> int:
    return (job.suspect_group or 0) & _WHOLE


def _may_be_slow(job: ClaimedJob) -> bool:
    return _steps(job) * STEP_SECONDS > SLOW_SECONDS


def _limit(job: ClaimedJob) -> float | None:
    """Return the shortened time limit of the job's part; None if it has the handler's limit."""
    if (steps := _steps(job)) in (0, _WHOLE):
        return None
    limit = max(steps * STEP_SECONDS, _enough.get(job.handler.name, 0.0), SHORTEST_LIMIT)
    return limit if limit < (job.handler.time_limit or conf.JOBS_TIME_LIMIT) else None


def _named(jobs: Sequence[ClaimedJob], error: BaseException) -> list[ClaimedJob]:
    """Return the jobs that the handler blames for the error. At the time limit, a job is to blame
    only if it took more than half of the call: else the limit may be too short for all jobs."""
    named = [job for job in jobs if any(job.blamed_for is each for each in _chain(error))]
    if isinstance(error, TimeLimitExceeded):
        now = time.monotonic()
        named = [job for job in named if now - job.blamed_since > (job.call_took or 0.0) / 2]
    return named


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and the errors during whose handling it was raised."""
    for _ in range(LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _call(
    handler: Handler, jobs: Sequence[ClaimedJob], limit: float | None
) -> BaseException | None:
    """Call the handler with several jobs; return its error, if any. Raises Interrupted."""
    for job in jobs:
        job.outcome = job.blamed_for = None
    try:
        with (
            structlog.contextvars.bound_contextvars(queue=handler.name),
            guarded(handler, limit),
            timed(jobs),
        ):
            if outcome := outcome_of(handler.handle_batch(list(jobs))):
                raise outcome
    except (Exception, TimeLimitExceeded) as error:
        return error
    return None


def _call_with_one(handler: Handler, job: ClaimedJob) -> Any:
    job.outcome = None
    returned = handler.handle_batch([job])
    return returned if outcome_of(returned) else _own_result(job)


def _error_before_call(job: ClaimedJob) -> Permanent | None:
    try:
        with connections.default():  # a validator may read the database
            check(job)
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
