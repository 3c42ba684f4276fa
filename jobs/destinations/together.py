"""Combine the database work of many coroutines into one call, such as one query instead of many."""

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async

from tailrace.db import connections
from tailrace.jobs.engine.run.handler_call import left_clean

T = TypeVar("T")
R = TypeVar("R")

MOST_ITEMS = 200
"""Maximum number of items in one call."""


class Together(Generic[T, R]):
    """Call `work` once for many items: `await together(item)` returns the result for this item.

    Items that arrive while a call runs are in the next call. `work` is a plain function that takes
    the items and returns one result for each, in their order. It runs in a thread, on the default
    connection, in a context of its own. If it raises, it is called again with one item at a time,
    so that only the callers with bad items get an error.
    `own_thread`: run it in a separate thread, because it waits and must not block database work.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R]], *, own_thread: bool = False
    ) -> None:
        self._work = work
        self._own_thread = own_thread
        self._waiting: WeakKeyDictionary[
            asyncio.AbstractEventLoop, list[tuple[T, asyncio.Future[R]]]
        ] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._executors: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor]
        self._executors = WeakKeyDictionary()

    async def __call__(self, item: T) -> R:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        if (waiting := self._waiting.get(loop)) is None:
            waiting = self._waiting[loop] = []
            task = loop.create_task(self._work_off(loop, waiting), context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append((item, future))
        return await future

    async def _work_off(
        self, loop: asyncio.AbstractEventLoop, waiting: list[tuple[T, "asyncio.Future[R]"]]
    ) -> None:
        await asyncio.sleep(0)  # wait for the items of other jobs that begin in this turn
        try:
            while waiting:
                group = waiting[:MOST_ITEMS]
                del waiting[:MOST_ITEMS]
                await self._call(group)
        finally:
            self._waiting.pop(loop, None)

    async def _call(self, group: list[tuple[T, "asyncio.Future[R]"]]) -> None:
        try:
            results = await self._call_work([item for item, _future in group])
        except Exception as error:
            if len(group) > 1:
                for waiting in group:
                    await self._call([waiting])
                return
            _end(group[0][1], error=error)
            return
        for (_item, future), result in zip(group, results, strict=True):
            _end(future, result)

    async def _call_work(self, items: Sequence[T]) -> Sequence[R]:
        if not self._own_thread:
            return await sync_to_async(self._work_cleanly)(items)
        loop = asyncio.get_running_loop()
        if loop not in self._executors:
            self._executors[loop] = ThreadPoolExecutor(1, thread_name_prefix="together")
        return await loop.run_in_executor(self._executors[loop], self._work, items)

    def _work_cleanly(self, items: Sequence[T]) -> Sequence[R]:
        """Do the work on a live connection that is clean afterwards."""
        connections.check_at_next_use()
        with left_clean("work for several jobs"):
            return self._work(items)


def _end(
    future: "asyncio.Future[R]", result: R | None = None, error: Exception | None = None
) -> None:
    if future.done():  # its caller was cancelled
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]
