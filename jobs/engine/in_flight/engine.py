"""The engine thread of async handlers, one per process: it claims and settles jobs, wakes queues.

It has an engine connection and runs no code of handlers. It works in rounds: short lists of steps
that never wait for a call.
"""

import queue
import threading
import time

import structlog
from django.db import DatabaseError

from tailrace.db import connections
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.claims import Claims
from tailrace.jobs.engine.in_flight.leases import Leases
from tailrace.jobs.engine.in_flight.loop import Loop
from tailrace.jobs.engine.in_flight.settlement import Settlement
from tailrace.jobs.engine.in_flight.watchdog import Watchdog
from tailrace.jobs.engine.leases.give_back import record_begun
from tailrace.jobs.engine.leases.lease import SLOW_SECONDS
from tailrace.jobs.engine.run.failure import interrupted
from tailrace.jobs.engine.run.verdict import Verdict, handed_back
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.runtime import shutdown, thread_failures
from tailrace.jobs.runtime.report import flush

log = structlog.get_logger(__name__)

PACE_SECONDS = 0.01
"""The minimum time between the beginnings of two rounds. Calls that end in this time are settled
together."""
LOOK_SECONDS = 0.25
"""The maximum time between two rounds while there is work: for time limits and shutdowns."""
HELD_SECONDS = 0.5
"""If a handler blocks the event loop for longer, no jobs are claimed."""
ABANDON_SECONDS = 5.0
"""A call that still runs this long after its time limit is given up, and its job is settled."""
INTERRUPT_SECONDS = 0.5
"""How long interrupted calls have to end, after the grace of a shutdown."""
LAST_SECONDS = 2.0
"""This long after the grace, the process may end even if jobs are not settled."""


class InFlight:
    """The calls of async handlers in this process."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Call | tuple[str, bool] | None] = queue.SimpleQueue()
        """Ended calls, messages for queues that may have work (the queue, and whether it was passed
        on), and None to begin a new round."""
        self._loop = Loop(self._inbox.put)
        self._claims = Claims(lambda calls: self._loop.begin(calls))
        self._settlement = Settlement()
        self._watchdog = Watchdog(lambda: self._loop)
        self._leases = Leases()
        self._next_round_at = 0.0
        self._end_at: float | None = None
        """When the grace of a shutdown ends, by time.monotonic(); None: no shutdown yet."""
        self._is_interrupted = False
        self._finished = threading.Event()
        threading.Thread(target=self._run, name="in-flight-engine", daemon=True).start()

    # --- for other threads ---

    def notify(self, name: str) -> bool:
        """Notify the engine thread that the queue may have work. Return whether the caller must
        pass the message on to another process."""
        is_passed_on = self._claims.may_pass_on(name, time.monotonic())
        self._inbox.put((name, is_passed_on))
        return is_passed_on

    def shut_down(self, grace_seconds: float) -> None:
        end_at = time.monotonic() + grace_seconds
        self._end_at = end_at if self._end_at is None else min(self._end_at, end_at)
        self._inbox.put(None)
        if not self._finished.wait(grace_seconds + LAST_SECONDS + 1):
            log.error("in_flight.not_ended")
        flush(max(end_at + LAST_SECONDS - time.monotonic(), 0.0))

    # --- the thread ---

    def _run(self) -> None:
        with connections.engine():  # the calls in flight need this thread
            try:
                thread_failures.keep_running("in-flight-engine", self._work)
            finally:
                self._stop()

    def _work(self) -> None:
        while not self._is_over():
            self._receive()
            self._round(time.monotonic())

    def _is_over(self) -> bool:
        if self._end_at is None:
            return False
        left = self._claims.in_flight()
        if left and time.monotonic() > self._end_at + LAST_SECONDS:
            log.error("in_flight.not_settled", jobs=[call.job.id for call in left])
            return True
        return not left

    def _stop(self) -> None:
        try:
            self._claims.record(float("inf"))
            connections.current().close()
        finally:
            self._finished.set()
            self._watchdog.stop()
            self._leases.stop()
            self._loop.stop()

    def _receive(self) -> None:
        """Wait until there is work to do, then take everything out of the inbox."""
        try:
            message = self._inbox.get(timeout=self._wait_seconds(time.monotonic()))
        except queue.Empty:
            return
        if (pause := self._next_round_at - time.monotonic()) > 0:
            time.sleep(pause)
        self._take(message)
        while not self._inbox.empty():
            self._take(self._inbox.get())

    def _wait_seconds(self, now: float) -> float | None:
        times = self._claims.next_times()
        if (at := self._settlement.next_at(now)) is not None:
            times.append(at)
        if self._claims.in_flight() or self._end_at is not None:
            times.append(now + LOOK_SECONDS)
        return max(min(times) - now, PACE_SECONDS) if times else None

    def _take(self, message: Call | tuple[str, bool] | None) -> None:
        if isinstance(message, Call):
            self._settlement.add(message)
        elif message is not None:
            self._claims.notified(*message, time.monotonic())

    def _round(self, now: float) -> None:
        self._next_round_at = now + PACE_SECONDS
        self._end_overdue(now)
        self._hand_over_slow_calls(now)
        self._settle(now)
        if self._is_ending():
            self._end_all(now)
        elif self._loop.held() < HELD_SECONDS:
            self._claims.fill(now)
        self._claims.pass_messages_on(now)
        self._claims.record(now)
        in_flight = self._claims.in_flight()
        self._watchdog.watch(bool(in_flight))
        self._leases.watch(in_flight)

    def _settle(self, now: float) -> None:
        if not len(self._settlement):
            return
        done, tally = self._settlement.settle(now)
        for (name, state), count in tally.items():
            self._claims.queues[name].count(state, count)
        self._claims.settled(done)
        given_back = {call.handler.name for call in done if call.is_given_back()}
        if self._end_at is not None:
            given_back |= {name for name, state in tally if state == "pending"}
        if given_back:  # other processes can run these jobs at once
            wake.wake(given_back)

    # --- calls that do not end by themselves ---

    def _end_overdue(self, now: float) -> None:
        """Settle the jobs whose calls did not end ABANDON_SECONDS after their time limit. If one
        call blocks the loop, the others cannot end, so only the blocking call is given up."""
        blocker = None
        if self._loop.held() > ABANDON_SECONDS:
            _task, blocker = self._loop.owner()
        for call in self._claims.in_flight():
            if call.began_at is None or call.verdict is not None:
                continue
            late = now - call.began_at - call.time_limit > ABANDON_SECONDS
            if late and blocker in (None, call):
                log.error("in_flight.not_cancelled", queue=call.handler.name, job_id=call.job.id)
                self._end(call, call.verdict_of(call.out_of_time()))
                if call is blocker:
                    self._replace_loop(call)
                    return

    def _end(self, call: Call, verdict: Verdict) -> None:
        if call.end(verdict):
            self._loop.forget(call)
            self._settlement.add(call)

    def _replace_loop(self, blocker: Call) -> None:
        """Start a new event loop, abandon the blocked one, and hand the jobs of its calls back."""
        log.error("in_flight.loop_replaced", queue=blocker.handler.name, job_id=blocker.job.id)
        old, self._loop = self._loop, Loop(self._inbox.put)
        for call in self._claims.in_flight():
            self._end(call, handed_back(call.job))
        old.stop()

    def _hand_over_slow_calls(self, now: float) -> None:
        """Record the begin of calls that take long, and hand back jobs that wait for too long."""
        long_ago = now - SLOW_SECONDS
        begun_jobs = []
        for call in self._claims.in_flight():
            if call.verdict is not None:
                continue
            if call.began_at is None:
                if call.waits_since is not None and call.waits_since < long_ago:
                    self._end(call, handed_back(call.job))
            elif call.began_at < long_ago and not call.is_recorded:
                call.is_recorded = True
                begun_jobs.append(call.job)
        try:
            if begun_jobs:
                record_begun(begun_jobs)
        except DatabaseError as error:  # if this process is lost, no attempt is counted
            log.warning("in_flight.not_recorded", jobs=len(begun_jobs), error=str(error).strip())

    # --- the end of the process ---

    def _is_ending(self) -> bool:
        if self._end_at is None and shutdown.requested():
            self._end_at = time.monotonic() + shutdown.seconds_left()
        return self._end_at is not None

    def _end_all(self, now: float) -> None:
        """Hand back the jobs that have not begun. After the grace, interrupt the running calls and
        hand their jobs back."""
        waiting = [call for call in self._claims.in_flight() if call.verdict is None]
        late = now - (self._end_at or now)
        if late < 0:
            waiting = [call for call in waiting if call.began_at is None]
        elif not self._is_interrupted:
            self._is_interrupted = True
            self._loop.interrupt(waiting)
            return
        elif late < INTERRUPT_SECONDS:
            return
        for call in waiting:
            verdict = handed_back if call.began_at is None else interrupted
            self._end(call, verdict(call.job))
        self._settle(now)
