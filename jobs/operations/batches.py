"""Retry, cancel and replay for operators: in batches of limited size, with an entry in the log."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from db.locks import Blocked
from jobs.models import Job
from jobs.operations import audit
from jobs.operations.cancel import cancel
from jobs.operations.replay import replay
from jobs.operations.result import OperationResult
from jobs.operations.retry import retry_now
from jobs.states import LIVE, REPLAYABLE, State

PERMISSION = "jobs.replay_job"
BATCH = 500
MAX_JOBS = 10_000
"""Jobs that one click or request changes at most."""


@dataclass(frozen=True, slots=True)
class JobAction:
    """An action of operators on jobs in certain states."""

    name: str
    past: str
    title: str
    operation: Callable[[Sequence[int], str], OperationResult]
    states: tuple[State, ...]


JOB_ACTIONS = {
    action.name: action
    for action in (
        JobAction("retry", "retried", "Retry now", retry_now, (State.PENDING,)),
        JobAction("cancel", "cancelled", "Cancel", cancel, LIVE),
        JobAction("replay", "replayed", "Replay", replay, REPLAYABLE),
    )
}


@dataclass(slots=True)
class Summary:
    """What an action did, over all batches."""

    changed: int = 0
    stop_requested: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    more: bool = False
    last: int | None = None
    """The id of the last job that was looked at."""

    def text(self, action: JobAction) -> str:
        sentences = [f"{_jobs(self.changed)} {action.past}."]
        if self.stop_requested:
            sentences.append(f"{_jobs(self.stop_requested)} running: stop requested.")
        sentences += [f"{_jobs(count)} not changed: {why}." for why, count in self.refused.items()]
        if self.more:
            sentences.append(f"There are more; one click changes up to {MAX_JOBS:,}.")
        return " ".join(sentences)


def apply(user: Any, action: JobAction, jobs: QuerySet[Job], limit: int = MAX_JOBS) -> Summary:
    """Apply the action to the jobs, newest first; each batch is a transaction."""
    summary = Summary()
    rows = jobs.order_by("-pk").values_list("pk", "handler")
    while not summary.more:
        rest = rows if summary.last is None else rows.filter(pk__lt=summary.last)
        batch = list(rest[: min(BATCH, limit)])
        if not batch:
            break
        summary.last, limit = batch[-1][0], limit - len(batch)
        try:
            _apply_to_batch(user, action, dict(batch), summary)
        except Blocked as error:
            summary.refused[str(error)] += len(batch)
        summary.more = limit <= 0 and rows.filter(pk__lt=summary.last).exists()
    return summary


def _apply_to_batch(user: Any, action: JobAction, batch: dict[int, str], summary: Summary) -> None:
    with transaction.atomic():
        result = action.operation(list(batch), user.get_username())
        # A replay may include dependents that are not in the batch.
        changed = [(id, f"{batch.get(id, 'job')} {id}") for id in result.changed]
        audit.record(user, Job, action.past, changed)
        stopping = [(id, f"{batch[id]} {id}") for id in result.stop_requested]
        audit.record(user, Job, "requested to stop", stopping)
    summary.changed += len(changed)
    summary.stop_requested += len(stopping)
    summary.refused.update(result.refused.values())


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
