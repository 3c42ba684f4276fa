"""The call of a task that this thread runs."""

from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tailrace.jobs.frameworks.celery_tasks.message.message import Collected, Message
from tailrace.jobs.frameworks.celery_tasks.message.payload import TaskPayload
from tailrace.jobs.handler import ClaimedJob


@dataclass(slots=True, eq=False)
class Call:
    """A call of a task, from the claim of its job to its outcome."""

    task: Any
    job: ClaimedJob
    payload: TaskPayload
    result: Any = None
    """What the task returned, as JSON values."""
    children: list[Any] = field(default_factory=list)
    """The results of the calls that the task has made, as tuples."""
    retry: Message | None = None
    """The call that `self.retry()` has published: this one again, with these arguments."""
    replacement: Sequence[Collected] | None = None
    """The jobs that `self.replace()` has called."""
    chord_parts: set[str] = field(default_factory=set)
    """The ids of tasks that were added to the chord of this one."""
    names: Counter[str] = field(default_factory=Counter)
    """The numbers of jobs by name that it has added to its flow: each attempt adds the same."""
    once: set[str] = field(default_factory=set)
    """The ids of calls that an earlier attempt of this job may have published."""

    @property
    def id(self) -> str:
        return self.payload.id

    @property
    def retries(self) -> int:
        return int(self.payload.headers.get("retries") or 0)

    @property
    def nesting(self) -> int:
        return int(self.payload.headers.get("replaced_task_nesting") or 0)

    def is_retry(self, message: Message) -> bool:
        """Whether a call with the id of this one is this one again, and not its replacement."""
        return message.nesting == self.nesting

    def joining(self, collected: Sequence[Collected]) -> set[int]:
        """Return the indexes of the jobs for which the jobs wait that wait for this one."""
        ids = self.chord_parts | {self.id}
        return {index for index, job in enumerate(collected) if job.message.id in ids}

    def named_once(self, errbacks: Sequence[Any]) -> list[Any]:
        """Return the signatures with ids that are the same in each attempt of this job."""
        named = []
        for number, errback in enumerate(errbacks):
            # Only an attempt whose worker was lost counts, and has the same number of others.
            others = self.job.claim_no - self.job.attempt
            key = f"tailrace:{self.job.id}:{others}:{number}"
            id = str(uuid5(NAMESPACE_URL, key))
            self.once.add(id)
            options = {**errback["options"], "task_id": id}
            named.append({**errback, "options": options})
        return named


current: ContextVar[Call | None] = ContextVar("celery_call", default=None)


def call_of(task_id: Any) -> Call | None:
    """Return the running call if it has this id."""
    call = current.get()
    return call if call is not None and call.id == task_id else None


def is_of_call(task_id: Any) -> bool:
    """Return whether this task is the running call, or was added to its chord."""
    call = current.get()
    return call is not None and (call.id == task_id or task_id in call.chord_parts)
