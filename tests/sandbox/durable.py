"""Celery tasks that run as jobs."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from celery import chain, chord, group, shared_task
from celery.exceptions import Ignore, Reject, SoftTimeLimitExceeded

from tailrace.celery import LeavingTask, Task
from tests.sandbox.models import Effect

script: list[Callable[..., Any]] = []
"""What the next calls of `scripted` in this process do; later calls return None."""


def note(text: str) -> None:
    Effect.objects.create(handler="durable", job_id=0, claim_no=0, note=text, process=0)


class Base(Task):
    """A base class of a project, with all hooks."""

    abstract = True
    hooks: list[Any] = []

    def before_start(self, task_id: Any, args: Any, kwargs: Any) -> None:
        self.hooks.append(("before_start", task_id, args, kwargs))

    def on_success(self, retval: Any, task_id: Any, args: Any, kwargs: Any) -> None:
        self.hooks.append(("on_success", retval, task_id, args, kwargs))

    def on_failure(self, exc: Any, task_id: Any, args: Any, kwargs: Any, einfo: Any) -> None:
        self.hooks.append(("on_failure", exc, task_id, args, kwargs, type(einfo).__name__))

    def on_retry(self, exc: Any, task_id: Any, args: Any, kwargs: Any, einfo: Any) -> None:
        self.hooks.append(("on_retry", exc, task_id, args, kwargs, type(einfo).__name__))

    def after_return(
        self, status: Any, retval: Any, task_id: Any, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        self.hooks.append(("after_return", status, retval, task_id, args, kwargs))


def durable(*args: Any, **options: Any) -> Any:
    options = {"base": Task, "ignore_result": False, **options}
    return shared_task(*args, **options)


@durable()
def add(a: Any, b: Any = 0) -> Any:
    """Add two numbers."""
    note(f"{a} + {b}")
    return a + b


@durable()
def tsum(numbers: list[Any]) -> Any:
    return sum(numbers)


@durable()
def identity(value: Any) -> Any:
    return value


@durable(ignore_result=True)
def silent(value: Any) -> Any:
    return value


@durable()
def fail(message: str = "no paper", *args: Any) -> None:
    raise ValueError(message)


@durable(bind=True, base=Base)
def scripted(self: Any, *args: Any, **kwargs: Any) -> Any:
    return script.pop(0)(self, *args, **kwargs) if script else None


@durable(bind=True, max_retries=2, default_retry_delay=30)
def flaky(self: Any, fails: int) -> int:
    if self.request.retries < fails:
        raise self.retry(exc=ConnectionError(f"try {self.request.retries}"))
    return int(self.request.retries)


@durable(
    autoretry_for=(ConnectionError,), retry_backoff=10, retry_jitter=False, max_retries=None,
    bind=True,
)  # fmt: skip
def auto(self: Any, fails: int) -> int:
    if self.request.retries < fails:
        raise ConnectionError("busy")
    return int(self.request.retries)


@durable(bind=True)
def describe(self: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    request = self.request
    names = ("id", "task", "retries", "root_id", "parent_id", "group", "hostname", "is_eager")
    return {name: getattr(request, name) for name in names} | {
        "delivery_info": request.delivery_info,
        "headers": request.headers,
        "eta": request.eta,
        "called_directly": request.called_directly,
        "args": request.args,
        "kwargs": request.kwargs,
    }


@durable(bind=True)
def spread(self: Any, count: int) -> Any:
    """Be replaced by a group."""
    return self.replace(group(add.s(number, 1) for number in range(count)))


@durable(bind=True)
def pass_on(self: Any, value: int) -> Any:
    """Be replaced by a chain."""
    return self.replace(chain(add.s(value, 1), add.s(10)))


@durable(bind=True)
def join_in(self: Any, value: int) -> Any:
    """Be replaced by a chord."""
    return self.replace(chord([add.s(value, 1), add.s(value, 2)], tsum.s()))


@durable(bind=True)
def add_part(self: Any, value: int) -> int:
    self.add_to_chord(add.s(value, 100))
    self.add_to_chord(add.s(value, 200))
    return value


@durable(bind=True)
def report(self: Any, done: int) -> None:
    self.update_state(state="PROGRESS", meta={"done": done})
    raise Ignore


@durable()
def reject(requeue: bool = False) -> None:
    raise Reject("not for me", requeue=requeue)


@durable()
def errback(task_id: str) -> None:
    note(f"errback of {task_id}")


@durable()
def errback_with_error(request: Any, exc: Any, traceback: Any) -> None:
    note(f"errback of {request.id}: {type(exc).__name__}: {exc}")


@durable()
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@durable(soft_time_limit=1, time_limit=60)
def nap_softly(seconds: float) -> str:
    try:
        time.sleep(seconds)
    except SoftTimeLimitExceeded:
        return "woken"
    return "rested"


@durable()
def die(path: str, deaths: int) -> int:
    """Kill the process of the worker, the first times that it is called."""
    with open(path, "a+") as file:
        file.write("x")
        file.seek(0)
        tries = len(file.read())
    if tries <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return tries


@durable()
def pid() -> int:
    return os.getpid()


@shared_task
def plain(value: Any) -> Any:
    note(f"plain {value}")
    return value


@durable(base=LeavingTask)
def double(number: Any) -> Any:
    """Is called at the broker again; earlier calls are jobs."""
    note(f"2 * {number}")
    return 2 * number


@durable(base=LeavingTask, bind=True, default_retry_delay=0)
def double_later(self: Any, number: Any) -> Any:
    """Fail once; then be replaced by two tasks."""
    if self.request.retries == 0:
        raise self.retry()
    return self.replace(chain(double.s(number), double.s()))
