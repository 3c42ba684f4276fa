"""The handlers of Celery tasks: one for each task, and a variant for each other queue to which
calls are routed."""

from functools import cached_property
from typing import Any, ClassVar

from celery.utils.time import rate
from django.utils.functional import classproperty

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.frameworks.celery_tasks import worker
from tailrace.jobs.frameworks.celery_tasks.message.payload import TaskPayload
from tailrace.jobs.handler import LOWEST_PRIORITY, Handler

NO_LIMIT = 30 * 86_400
"""Seconds. Celery has no time limit by default; the limits of a call are kept by `run`."""


class CeleryTaskHandler(Handler):
    """The base class of the handlers; `registration` has the one that runs tasks."""

    Payload = TaskPayload
    time_limit = NO_LIMIT
    app: ClassVar[Any]
    task_name: ClassVar[str]
    queue: ClassVar[str] = ""
    """The Celery queue; empty: the one that the task is routed to."""

    @cached_property
    def worker_queue(self) -> str:  # type: ignore[override]
        return self.queue or routed_queue(self.app, self.task_name)

    @classproperty
    def priority(cls) -> int:
        """That of calls without a priority: of the jobs of schedules."""
        return priority_of(cls.app, None)

    @classproperty
    def rate_limit(cls) -> float | None:
        try:
            return rate_per_second(cls.app._tasks[cls.task_name]) or None
        except (KeyError, ValueError):  # a check names it
            return None

    @property
    def one_job_per_drain(self) -> bool:  # type: ignore[override]
        return worker.counts_tasks

    @property
    def task(self) -> Any:
        return self.app.tasks[self.task_name]

    def variant(self, name: str) -> Handler | None:
        return variant_of(type(self), name.partition("@")[2])()


def variant_of(cls: type[CeleryTaskHandler], queue: str) -> type[CeleryTaskHandler]:
    """Return the handler of the calls that are routed to this queue."""
    base: Any = cls.__mro__[1] if cls.queue else cls
    name = f"{base.name}@{queue}"
    known = next((each for each in base.__subclasses__() if each.name == name), None)
    if known is not None:
        return known
    names = ("__module__", "__qualname__", "__doc__")
    fields = {key: getattr(base, key) for key in names} | {"name": name, "queue": queue}
    variant = type(base.__name__, (base,), fields)
    registry.clear()
    return variant


def routed_queue(app: Any, task: str) -> str:
    """Return the name of the Celery queue to which calls of the task are routed by default."""
    route = app.amqp.router.route({}, task, (), {}, app._tasks.get(task))
    queue = route.get("queue")
    return str(getattr(queue, "name", queue or app.conf.task_default_queue))


def priority_of(app: Any, priority: int | None) -> int:
    """Return the job's priority, 0 (first) to 3, for Celery's priority, 0 to 9. As at the broker, 0
    is the first on Redis and the last elsewhere, and none counts as 0."""
    level = min(max(priority or 0, 0) // 3, LOWEST_PRIORITY)
    is_redis = str(app.conf.broker_url or "").startswith(("redis", "sentinel", "valkey"))
    return level if is_redis else LOWEST_PRIORITY - level


def rate_per_second(task: Any) -> float:
    """Return the rate limit of a task, such as `10/m`, one call every six seconds; 0: none. Raises
    KeyError or ValueError."""
    given = task.rate_limit
    return float(rate(task.app.conf.task_default_rate_limit if given is None else given))


declared: dict[str, type[CeleryTaskHandler]] = {}
"""The handlers by the names of their tasks, without variants."""
_queues: set[str] = set()
"""The variants whose rows in the table of queues exist."""


def handler_of(task: Any, queue: str) -> Handler:
    """Return the handler of a call that is routed to this Celery queue; empty: to the queue of the
    task."""
    handler = registry.get(task.name)
    if not queue or handler.worker_queue == queue:
        return handler
    variant = variant_of(declared[task.name], queue)
    _ensure_queue(variant.name)
    return registry.get(variant.name)


def _ensure_queue(name: str) -> None:
    """Create the row of a variant, of which `migrate` does not know."""
    if name not in _queues:
        sync_declared.add_queue(name)
        _queues.add(name)


def forget_queues() -> None:
    """For tests, which remove the rows."""
    _queues.clear()
