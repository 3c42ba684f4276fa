"""Detect handlers that block the event loop, and log a warning while they do."""

import sys
import threading
import time
import traceback
from collections.abc import Callable

import structlog

from tailrace.jobs.engine.in_flight.loop import Loop

log = structlog.get_logger(__name__)

BLOCKED_SECONDS = 0.1
"""A task that blocks the loop for longer is reported."""
LOOK_SECONDS = 0.02
REPEAT_SECONDS = 10.0
"""The minimum time between two warnings about the same handler."""
FRAMES = 4


class Watchdog:
    """A thread that checks the loop every LOOK_SECONDS while calls are in flight."""

    def __init__(self, loop: Callable[[], Loop]) -> None:
        self._loop = loop
        self._in_flight = threading.Event()
        self._round: float | None = None
        self._task: object = None
        self._since = 0.0
        self._is_reported = False
        self._reported_at: dict[str, float] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="in-flight-watch", daemon=True)
        self._thread.start()

    def watch(self, in_flight: bool) -> None:
        """Begin or stop checking the loop."""
        if in_flight != self._in_flight.is_set():
            (self._in_flight.set if in_flight else self._in_flight.clear)()

    def stop(self) -> None:
        self._stopping = True
        self._in_flight.set()

    def _run(self) -> None:
        while not self._stopping:
            self._in_flight.wait()
            time.sleep(LOOK_SECONDS)
            try:
                self._look(self._loop(), time.monotonic())
            except Exception:
                log.exception("in_flight.watchdog_failed")

    def _look(self, loop: Loop, now: float) -> None:
        """Measure how long the current task has run. One iteration of the loop may run many."""
        since = loop.held_since()
        if since is None:
            self._round = None
            return
        task, call = loop.owner()
        if since != self._round:
            self._round, self._task, self._since, self._is_reported = since, task, since, False
        elif task is not self._task:
            self._task, self._since, self._is_reported = task, now, False
        if now - self._since <= BLOCKED_SECONDS or self._is_reported:
            return
        self._is_reported = True
        name = call.handler.name if call else "unknown"
        if now - self._reported_at.get(name, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._reported_at[name] = now
        log.warning(
            "in_flight.loop_blocked",
            queue=name,
            job_id=call.job.id if call else None,
            seconds=round(now - self._since, 3),
            at=_stack_of(loop.thread.ident),
            hint="it blocks all async handlers of this process: await, or use a thread"
            " (sync_to_async, asyncio.to_thread)",
        )


def _stack_of(thread: int | None) -> str:
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return ""
    frames = traceback.extract_stack(frame, limit=FRAMES)
    return " < ".join(f"{f.filename}:{f.lineno} {f.name}" for f in reversed(frames))
