"""The thread of the event loop: it begins calls, cancels them at their time limits and reports
ended calls.

All code of async handlers runs in this thread, and no SQL of the engine.
"""

import asyncio
import contextvars
import functools
import selectors
import threading
import time
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import structlog

from tailrace.jobs.engine.in_flight import call as calls
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.places import no_place
from tailrace.jobs.engine.in_flight.threads import JobThread, OtherThreads, Threads
from tailrace.jobs.engine.run.failure import verdict_of
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.handler import Handler
from tailrace.jobs.runtime import shutdown

log = structlog.get_logger(__name__)


class _TimedSelector(selectors.DefaultSelector):
    """A selector that records since when the loop runs callbacks without polling for I/O."""

    held_since: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        self.held_since = None
        ready = super().select(timeout)
        self.held_since = time.monotonic()
        return ready


class Loop:
    """An event loop in a separate thread. `on_end` is called with each ended call."""

    def __init__(self, on_end: Callable[[Call], None]) -> None:
        self._on_end = on_end
        self._selector = _TimedSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_task_factory(self._new_task)  # type: ignore[arg-type]
        self._loop.set_default_executor(OtherThreads(thread_name_prefix="sync"))
        self._loop.set_exception_handler(_log_error)
        self._owners: weakref.WeakKeyDictionary[asyncio.Task[Any], Call]
        self._owners = weakref.WeakKeyDictionary()
        self._threads = Threads()
        self._running_by_destination: Counter[tuple[str, str]] = Counter()
        """The number of running calls by handler and destination."""
        self._running: Counter[str] = Counter()
        """The number of running calls by handler."""
        self._waiting: defaultdict[str, deque[Call]] = defaultdict(deque)
        """Calls that wait until fewer than `concurrency` calls run, by handler."""
        self._stopping = False
        self.thread = threading.Thread(target=self._run, name="in-flight-loop", daemon=True)
        self.thread.start()

    # --- for other threads ---

    def begin(self, claimed: Iterable[Call]) -> None:
        """Begin these calls as soon as the `concurrency` of their handlers allows."""
        self._loop.call_soon_threadsafe(self._begin_all, list(claimed))

    def interrupt(self, running: Iterable[Call]) -> None:
        self._loop.call_soon_threadsafe(self._interrupt_all, list(running))

    def forget(self, call: Call) -> None:
        """Stop counting a call as running although it does not end, so that another call can
        begin."""
        self._loop.call_soon_threadsafe(self._free_place, call)

    def held(self) -> float:
        """Return the seconds for which callbacks have run without polling for I/O."""
        since = self._selector.held_since
        return 0.0 if since is None else time.monotonic() - since

    def held_since(self) -> float | None:
        return self._selector.held_since

    def owner(self) -> tuple[object, Call | None]:
        """Return the running task, and the call that it belongs to."""
        task = asyncio.current_task(self._loop)
        return task, None if task is None else self._owners.get(task)

    def stop(self) -> None:
        """End the thread, unless a callback blocks it. Running tasks are dropped."""
        self._stopping = True
        self._loop.set_exception_handler(lambda loop, context: None)  # ignore dropped tasks
        self._loop.call_soon_threadsafe(self._loop.stop)

    # --- in the thread ---

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._stopping:
            try:
                self._loop.run_forever()
            except BaseException:  # such as SystemExit in a task that a handler created
                log.exception("in_flight.loop_error")
        self._threads.close()
        self._loop.close()
        self._selector.held_since = None

    def _begin_all(self, claimed: list[Call]) -> None:
        now = time.monotonic()
        for call in claimed:
            call.waits_since = now
            self._waiting[call.handler.name].append(call)
        for handler in {call.handler for call in claimed}:
            self._begin_waiting(handler)

    def _begin_waiting(self, handler: Handler) -> None:
        waiting = self._waiting[handler.name]
        while waiting and self._running[handler.name] < handler.concurrency:
            if shutdown.requested():  # the engine thread hands the waiting jobs back
                return
            call = waiting.popleft()
            if call.verdict is not None:  # the engine thread has handed it back
                continue
            try:
                self._begin(call)
            except Exception as error:  # mostly raised by the handler's `destination`
                self._end(call, verdict_of(call.job, error))

    def _begin(self, call: Call) -> None:
        handler = call.handler
        if handler.per_destination is not None:
            destination = handler.destination(call.job)
            key = handler.name, destination
            if self._running_by_destination[key] >= handler.per_destination:
                call.full_destination = destination
                self._end(call, no_place(call.job, destination))
                return
            call.destination = destination
            self._running_by_destination[key] += 1
        call.has_place = True
        self._running[handler.name] += 1
        call.began_at = time.monotonic()
        context = contextvars.Context()
        context.run(calls.current.set, call)
        coroutine = calls.run(call, JobThread(self._threads))
        call.task = context.run(self._loop.create_task, coroutine, context=context)
        call.task.add_done_callback(functools.partial(self._task_ended, call))
        call.timer = self._loop.call_later(call.time_limit, self._time_out, call)

    def _time_out(self, call: Call) -> None:
        call.timed_out = True
        if call.task is not None:
            call.task.cancel()

    def _interrupt_all(self, running: list[Call]) -> None:
        for call in running:
            call.interrupted = True
            if call.task is not None:
                call.task.cancel()

    def _task_ended(self, call: Call, task: "asyncio.Task[Verdict]") -> None:
        if call.timer is not None:
            call.timer.cancel()
        try:
            verdict = task.result()
        except BaseException as error:  # the task was cancelled before its first step
            verdict = call.verdict_of(error)
        self._end(call, verdict)

    def _end(self, call: Call, verdict: Verdict) -> None:
        self._free_place(call)
        call.task = call.timer = None
        if call.end(verdict):
            self._on_end(call)

    def _free_place(self, call: Call) -> None:
        if not call.has_place:
            return
        call.has_place = False
        self._running[call.handler.name] -= 1
        if call.destination is not None:
            key = call.handler.name, call.destination
            self._running_by_destination[key] -= 1
            if not self._running_by_destination[key]:
                del self._running_by_destination[key]
        self._begin_waiting(call.handler)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **kwargs: Any
    ) -> "asyncio.Task[Any]":
        task = asyncio.Task(coroutine, loop=loop, **kwargs)
        if call := calls.current.get():
            self._owners[task] = call
        return task


def _log_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    call = calls.current.get()
    log.warning(
        "in_flight.loop_error",
        queue=call.handler.name if call else None,
        error=context.get("message"),
        exc_info=context.get("exception"),
    )
