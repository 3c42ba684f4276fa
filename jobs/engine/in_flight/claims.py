"""Claim jobs for the async handlers of this process, as many as their `concurrency` allows."""

import time
from collections.abc import Callable, Sequence

import structlog
from django.db import DatabaseError, InterfaceError

from tailrace.db import connections
from tailrace.db.connections import with_reconnect
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.begin import begin
from tailrace.jobs.engine.claiming.claim import Batch, claim
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.isolation import Isolation
from tailrace.jobs.engine.in_flight.queue_state import QueueState
from tailrace.jobs.engine.run.verdict import handed_back
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

LIMITS_SECONDS = 0.25
"""Maximum age of a queue's limits at a claim. After a pause, claims stop within this time."""
RETRY_SECONDS = 0.5
"""The wait after a database error."""


class Claims:
    """The queues of async handlers in this process, and their claims. Used by the engine thread.
    `begin_calls` is called with claimed jobs as soon as they may begin."""

    def __init__(self, begin_calls: Callable[[Sequence[Call]], None]) -> None:
        self._begin_calls = begin_calls
        self.queues: dict[str, QueueState] = {}
        self._isolation = Isolation()

    def may_pass_on(self, name: str, now: float) -> bool:
        """Whether to pass a message on to another process at once. For any thread."""
        state = self.queues.get(name)
        return state is not None and state.free() <= 0 and state.passes.is_over(now)

    def notified(self, name: str, is_passed_on: bool, now: float) -> None:
        """Record that the queue may have work. If this process can take no more jobs or knows of
        the work already, the message is kept for other processes, too."""
        state = self.queues.get(name)
        if state is None:
            state = self.queues[name] = QueueState(registry.get(name))
        if not is_passed_on and (state.may_have_work or state.free() <= 0):
            state.keep_message(now)
        state.must_begin |= not state.may_have_work
        state.may_have_work = True

    def in_flight(self) -> list[Call]:
        return [call for state in self.queues.values() for call in state.calls]

    def fill(self, now: float) -> None:
        """Claim jobs for each queue until its `concurrency` is reached or no job is due."""
        self._begin_isolated(now)
        for state in self.queues.values():
            state.ends.look(now)
            while state.may_have_work and state.free() > 0 and self._may_claim(state):
                try:
                    self._claim(state, now)
                except Exception as error:  # mostly of the database; `may_have_work` stays true
                    state.retry_at = time.monotonic() + RETRY_SECONDS
                    self._log_error(state, error)

    def _may_claim(self, state: QueueState) -> bool:
        now = time.monotonic()
        return now >= state.retry_at and not self._isolation.is_on(now)

    def _claim(self, state: QueueState, now: float) -> None:
        handler, is_fresh = state.handler, False
        if state.must_begin or now - state.began_at > LIMITS_SECONDS:
            state.limits = with_reconnect(lambda: begin(handler))
            state.began_at, state.must_begin, is_fresh = now, False, True
            state.message_pending = False
        if state.limits is None:  # it is paused
            state.may_have_work = False
            return
        free, at_once = state.free(), not state.ahead()
        jobs = claim(handler, state.limits, free, state.lanes_in_use(), at_once=at_once)
        self._begin(state, jobs, now, at_once)
        if len(jobs) == free:
            if not jobs.awake and state.messages.is_over(now):
                wake.soon([handler.name])
        elif not jobs or _are_all_due(state, jobs):
            # Only a claim after clearing the flag `awake` sees all jobs that sent no message.
            state.may_have_work = state.must_begin = not is_fresh
            if is_fresh:
                state.reset_messages()

    def _begin(self, state: QueueState, jobs: Batch, now: float, at_once: bool) -> None:
        try:
            calls = [Call(job, is_recorded=at_once) for job in jobs]
        except Exception:  # such as a missing setting
            settle([handed_back(job) for job in jobs])
            raise
        state.add(calls, now)
        if jobs and jobs[0].isolate:
            self._isolation.add(calls[0], now)
            self._begin_isolated(now)
        elif calls:
            self._begin_calls(calls)

    def _begin_isolated(self, now: float) -> None:
        if self._isolation.is_on(now) and (
            calls := self._isolation.next(len(self.in_flight()), now)
        ):
            self._begin_calls(calls)

    def pass_messages_on(self, now: float) -> None:
        """Send the kept messages to other processes, when their time has come."""
        for state in self.queues.values():
            at = state.message_at()
            if at is not None and now >= at:
                state.message_pending = False
                state.messages.is_over(now)
                wake.deliver([state.handler.name])

    def settled(self, done: Sequence[Call]) -> None:
        """Remove these settled calls, so that other jobs may be claimed."""
        for state in {call.handler.name: self.queues[call.handler.name] for call in done}.values():
            calls = [call for call in done if call in state.calls]
            state.calls.difference_update(calls)
            state.ends.add(sum(call.began_at is not None for call in calls))
            if state.is_limited() or any(call.is_given_back() for call in calls):
                state.may_have_work = state.must_begin = True
            self._postpone(state, calls)

    def _postpone(self, state: QueueState, done: Sequence[Call]) -> None:
        """Remember the calls that did not begin because of `per_destination`; for each other call,
        make one postponed job of its destination due."""
        for call in done:
            if call.full_destination is not None:
                state.postponed.add(call.full_destination, call.job)
        try:
            state.postponed.bring_forward(c.destination for c in done if c.destination is not None)
        except Exception as error:  # the jobs are due a little later
            self._log_error(state, error)

    def record(self, now: float) -> None:
        """Write the statistics of settled jobs, once per RECORD_SECONDS."""
        for state in self.queues.values():
            at = state.record_at()
            if at is not None and now >= at:
                try:
                    state.record(now)
                except Exception as error:  # some numbers are lost
                    self._log_error(state, error)

    def next_times(self) -> list[float]:
        """Return the times of the next work for all queues, by time.monotonic()."""
        times = (at for state in self.queues.values() for at in state.next_times())
        return [at for at in times if at is not None]

    def _log_error(self, state: QueueState, error: Exception) -> None:
        if isinstance(error, DatabaseError | InterfaceError):
            log.warning("in_flight.database", queue=state.handler.name, error=str(error).strip())
        else:
            thread_failures.record(f"in-flight-engine: {state.handler.name}", error)
        if not connections.timed_out(error):
            connections.current().close()


def _are_all_due(state: QueueState, jobs: Batch) -> bool:
    """Whether a claim that returned fewer jobs than allowed has claimed all due jobs."""
    limited = state.is_limited() or (state.limits is not None and state.limits.rate_limit)
    return not (limited or state.handler.in_lanes() or jobs[0].isolate)
