"""The handlers of tasks: each `@task` function has its own, whose name is the function's path."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from asgiref.sync import sync_to_async

from tailrace.jobs.engine.in_flight import call
from tailrace.jobs.engine.run.failure import verdict_of
from tailrace.jobs.frameworks.django_tasks import results
from tailrace.jobs.frameworks.django_tasks.errors import NotJson, TaskExited
from tailrace.jobs.frameworks.django_tasks.framework import (
    Task,
    TaskContext,
    TaskResult,
    normalize_json,
    signals,
)
from tailrace.jobs.frameworks.django_tasks.payload import TaskPayload
from tailrace.jobs.handler import ClaimedJob, Handler


class TaskHandler(Handler):
    """Calls the function of one task, and sends the framework's signals."""

    Payload = TaskPayload
    task: ClassVar[Task]
    lane_argument: ClassVar[str | None] = None
    """The argument of the function whose value is the lane of a job."""

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        if self.lane_argument is None:
            return ""
        context = (None,) if self.task.takes_context else ()
        signature = inspect.signature(self.task.func)
        bound = signature.bind(*context, *payload["args"], **payload["kwargs"])
        bound.apply_defaults()
        return str(bound.arguments[self.lane_argument])


class SyncTaskHandler(TaskHandler):
    def handle(self, job: ClaimedJob) -> Any:
        result = results.of_claim(self.task, job)
        sender = type(result.task.get_backend())
        signals.task_started.send_robust(sender, task_result=result)
        try:
            returned = _as_json(_call(result))
        except BaseException as error:
            if results.end(result, verdict_of(job, error)):
                signals.task_finished.send_robust(sender, task_result=result)
            raise
        results.succeed(result, returned)
        signals.task_finished.send_robust(sender, task_result=result)
        return returned


class AsyncTaskHandler(TaskHandler):
    async def handle(self, job: ClaimedJob) -> Any:
        of_claim = results.of_claim
        if job.claim_no > 1:
            result = await sync_to_async(of_claim)(self.task, job)
        else:
            result = of_claim(self.task, job)
        sender = type(result.task.get_backend())
        await signals.task_started.asend_robust(sender, task_result=result)
        try:
            returned = _as_json(await result.task.func(*_arguments(result), **result.kwargs))
        except BaseException as error:
            current = call.current.get()
            assert current is not None  # noqa: S101
            if results.end(result, current.verdict_of(error)):
                await signals.task_finished.asend_robust(sender, task_result=result)
            raise
        results.succeed(result, returned)
        await signals.task_finished.asend_robust(sender, task_result=result)
        return returned


def _arguments(result: TaskResult) -> list[Any]:
    context = [TaskContext(task_result=result)] if result.task.takes_context else []
    return context + result.args


def _call(result: TaskResult) -> Any:
    try:
        return result.task.func(*_arguments(result), **result.kwargs)
    except SystemExit as error:
        raise TaskExited(f"SystemExit: {error}") from error


def _as_json(returned: Any) -> Any:
    try:
        return normalize_json(returned)
    except (TypeError, ValueError) as error:
        raise NotJson(f"the return value is not JSON serializable: {error}") from error
