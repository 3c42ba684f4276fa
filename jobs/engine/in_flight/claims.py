"""Claim as many jobs as there are free places, for each queue of this process that has work."""

import time
from collections.abc import Callable, Sequence

import structlog

from tailrace.db import connections
from tailrace.db.reconnect import with_reconnect
from tailrace.jobs import registry
from tailrace.jobs.engine import wake
from tailrace.jobs.engine.claiming.begin import begin
from tailrace.jobs.engine.claiming.claim import Batch, claim
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.isolation import Isolation
from tailrace.jobs.engine.in_flight.queue_state import QueueState

log = structlog.get_logger(__name__)

LIMITS_SECONDS = 0.25
"""How old the limits of a queue may be at a claim; a paused queue claims nothing after this."""
RETRY_SECONDS = 0.5
"""After an error of the database."""


class Claims:
    """The queues of this process, and their claims. Of the engine's thread alone.

    `begin_calls` gets what was claimed, as soon as it may begin.
    """

    def __init__(self, begin_calls: Callable[[Sequence[Call]], None]) -> None:
        self._begin_calls = begin_calls
        self.queues: dict[str, QueueState] = {}
        self._isolation = Isolation()

    def may_pass_on(self, name: str, now: float) -> bool:
        """Whether a message for this queue that comes now is passed on at once. Any thread."""
        state = self.queues.get(name)
        return state is not None and state.free() <= 0 and state.passes.is_over(now)

    def rung(self, name: str, is_passed_on: bool, now: float) -> None:
        """Note that the queue may have work. A message that comes while there is no place for it,
        or while more is known to be due, is for other processes, too."""
        state = self.queues.get(name)
        if state is None:
            state = self.queues[name] = QueueState(registry.get(name))
        if not is_passed_on and (state.may_have_work or state.free() <= 0):
            state.message_came(now)
        state.must_begin |= not state.may_have_work
        state.may_have_work = True

    def in_flight(self) -> list[Call]:
        """Return what is claimed and not settled."""
        return [call for state in self.queues.values() for call in state.calls]

    def fill(self, now: float) -> None:
        """Claim for all queues until there is no free place, or nothing is due."""
        self._begin_isolated(now)
        for state in self.queues.values():
            state.ends.look(now)
            while state.may_have_work and state.free() > 0 and self._may_claim(state):
                try:
                    self._claim(state, now)
                except Exception as error:  # of the database; the message that came is not lost
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
        elif not jobs or _are_all(state, jobs):
            # Only a claim after the flag was cleared sees all that sends no message any more.
            state.may_have_work = state.must_begin = not is_fresh
            if is_fresh:
                state.has_slack()

    def _begin(self, state: QueueState, jobs: Batch, now: float, at_once: bool) -> None:
        calls = [Call(job, is_recorded=at_once) for job in jobs]
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
        """Send the messages that this process has no place for to other processes."""
        for state in self.queues.values():
            at = state.message_at()
            if at is not None and now >= at:
                state.message_pending = False
                state.messages.is_over(now)
                wake.deliver([state.handler.name])

    def settled(self, done: Sequence[Call]) -> None:
        """Free the places of these calls."""
        for state in {call.handler.name: self.queues[call.handler.name] for call in done}.values():
            calls = [call for call in done if call in state.calls]
            state.calls.difference_update(calls)
            state.ends.add(sum(call.began_at is not None for call in calls))
            if state.is_limited() or any(call.is_given_back() for call in calls):
                state.may_have_work = state.must_begin = True
            self._postpone(state, calls)

    def _postpone(self, state: QueueState, done: Sequence[Call]) -> None:
        """Remember which of these had no place, and bring others forward for those that had one."""
        for call in done:
            if call.full_destination is not None:
                state.postponed.add(call.full_destination, call.job)
        try:
            state.postponed.bring_forward(c.destination for c in done if c.destination is not None)
        except Exception as error:  # they are due a little later
            self._log_error(state, error)

    def record(self, now: float) -> None:
        """Write what was settled to the statistics, from time to time."""
        for state in self.queues.values():
            at = state.record_at()
            if at is not None and now >= at:
                try:
                    state.record(now)
                except Exception as error:  # some numbers are lost
                    self._log_error(state, error)

    def next_times(self) -> list[float]:
        """Return when something is to be done."""
        times = (at for state in self.queues.values() for at in state.next_times())
        return [at for at in times if at is not None]

    def _log_error(self, state: QueueState, error: Exception) -> None:
        log.warning("in_flight.database", queue=state.handler.name, error=str(error).strip())
        if not connections.timed_out(error):
            connections.current().close()


def _are_all(state: QueueState, jobs: Batch) -> bool:
    """Whether a claim that took less than it might shows that no more is due."""
    limited = state.is_limited() or (state.limits is not None and state.limits.rate_limit)
    return not (limited or state.handler.in_lanes() or jobs[0].isolate)
