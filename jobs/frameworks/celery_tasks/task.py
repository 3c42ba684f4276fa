"""The class of tasks that run as jobs. A project imports it before Django is set up, so this module
imports nothing that needs settings or models: `registration` sets what does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.exceptions import Ignore
from django.core.exceptions import AppRegistryNotReady


@dataclass(frozen=True)
class Parts:
    """What the class needs once Django is set up."""

    register: Callable[[Any, str], None]
    """Declares the handler of a task of this app with this name."""
    producer: Callable[[Any, dict[str, Any]], Any]
    """Returns what publishes a call of a task with these options."""
    is_of_call: Callable[[Any], bool]
    """Whether the task with this id is the running call, or was added to its chord."""
    replace: Callable[[Any, Any], bool]
    """Replaces the running call of a task by a signature; returns False if it is no job."""


parts: Parts | None = None
bound: list[tuple[Any, str]] = []
"""The apps and the names of tasks whose handlers are not declared yet."""


class Task(DjangoTask):
    """A Celery task whose calls are jobs: created in the caller's transaction, and seen on the
    board."""

    abstract = True
    creates_jobs = True
    max_attempts = 4
    """How often a call is tried if its worker is lost each time. Celery's own retries do not
    count."""

    @classmethod
    def on_bound(cls, app: Any) -> None:
        super().on_bound(app)
        if cls.name:
            bound.append((app, cls.name))
            declare(parts)

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: Any = None,
        producer: Any = None,
        link: Any = None,
        link_error: Any = None,
        shadow: Any = None,
        **options: Any,
    ) -> Any:
        """Create the job of a call in the caller's transaction, with Celery's arguments. Raises
        NotJson if an argument is not JSON."""
        if not self._get_app().conf.task_always_eager and (
            runs_as_job(self) or (parts is not None and parts.is_of_call(task_id))
        ):
            if parts is None:
                raise AppRegistryNotReady(
                    f"{self.name} was called before Django was set up, or without 'tailrace.jobs'"
                    " in INSTALLED_APPS"
                )
            producer = parts.producer(self, options)
        return super().apply_async(
            args, kwargs, task_id=task_id, producer=producer, link=link, link_error=link_error,
            shadow=shadow, **options,
        )  # fmt: skip

    def delay_on_commit(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as `delay`: the job is part of the transaction."""
        return self.delay(*args, **kwargs)

    def apply_async_on_commit(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as `apply_async`: the job is part of the transaction."""
        return self.apply_async(*args, **kwargs)

    def on_replace(self, sig: Any) -> Any:
        if parts is None or self.request.is_eager or not parts.replace(self, sig):
            return super().on_replace(sig)
        raise Ignore("Replaced by new task")


class LeavingTask(Task):
    """A task whose new calls go to the broker, as Celery's own, while the jobs of earlier calls are
    worked off: a release with this class comes before one without ours. A job that is retried or
    replaced stays a job."""

    abstract = True
    creates_jobs = False

    def delay_on_commit(self, *args: Any, **kwargs: Any) -> Any:
        return DjangoTask.delay_on_commit(self, *args, **kwargs)

    def apply_async_on_commit(self, *args: Any, **kwargs: Any) -> Any:
        return DjangoTask.apply_async_on_commit(self, *args, **kwargs)


_continues: ContextVar[bool] = ContextVar("continues", default=False)


@contextmanager
def continuing() -> Iterator[None]:
    """Within the block, calls of LeavingTask create jobs: they continue a job."""
    token = _continues.set(True)
    try:
        yield
    finally:
        _continues.reset(token)


def runs_as_job(task: Any) -> bool:
    """Return whether a call of this task creates a job."""
    return isinstance(task, Task) and (task.creates_jobs or _continues.get())


def set_parts(given: Parts) -> None:
    """Set what the class needs, and declare the handlers of the tasks that are bound by now."""
    global parts
    parts = given
    declare(parts)


def declare(given: Parts | None) -> None:
    while given is not None and bound:
        given.register(*bound.pop(0))
