"""Tasks of Django's task framework."""

import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from tailrace.jobs.frameworks.django_tasks.framework import TaskContext, task
from tailrace.jobs.handler import Retry
from tests.sandbox import durable  # noqa: F401  (Celery finds tasks in this module only)
from tests.sandbox.models import Effect

script: list[Callable[[], Any]] = []
"""What the next calls of `scripted` in this process do; later calls do nothing."""


def note(text: str) -> None:
    Effect.objects.create(handler="task", job_id=0, claim_no=0, note=text, process=0)


@task
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    note(f"{a} + {b}")
    return a + b


@task
def fail(message: str) -> None:
    raise ValueError(message)


@task
def scripted() -> Any:
    return script.pop(0)() if script else None


@task(takes_context=True)
def describe(context: TaskContext, *, fails: int = 0) -> dict[str, Any]:
    result = context.task_result
    if context.attempt <= fails:
        raise ConnectionError(f"attempt {context.attempt}")
    return {
        "id": result.id,
        "attempt": context.attempt,
        "status": result.status,
        "errors": [error.exception_class_path for error in result.errors],
        "workers": len(set(result.worker_ids)),
        "priority": result.task.priority,
    }


@task(priority=10, queue_name="mails")
def remind(user: str, text: str = "") -> str:
    note(f"{user}: {text}")
    return user


@task
async def exchange(letter: str, *, fails: bool = False) -> str:
    await sync_to_async(note)(letter)
    if fails:
        raise LookupError(letter)
    return letter.upper()


@task(takes_context=True)
async def attempts(context: TaskContext) -> int:
    if context.attempt == 1:
        raise Retry("once more", after=0)
    return context.attempt


@task
def nap(seconds: float) -> None:
    time.sleep(seconds)


@task(backend="elsewhere")
def foreign() -> None:
    pass
