"""Retry, cancel and replay jobs in batches, with an entry in the audit log."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from tailrace.db.engine_database import home
from tailrace.db.locks import Blocked
from tailrace.jobs.models import Job, Replay
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.runtime import audit
from tailrace.jobs.runtime.states import LIVE, REPLAYABLE, State

PERMISSION = "tailrace_jobs.replay_job"
BATCH = 500
MAX_JOBS = 10_000
"""The maximum number of jobs that one click or request changes."""


Hidden = Callable[[Sequence[Job]], set[int]]
"""A function that returns the ids of the given jobs that the user may not see."""


@dataclass(frozen=True, slots=True)
class JobAction:
    """An action of operators on jobs in certain states."""

    name: str
    past: str
    title: str
    operation: Callable[..., OperationResult]
    """Called with the ids of the jobs and the name of the user."""
    states: tuple[State, ...]
    can_be_undone: bool = False
    """Whether the operation takes `record`, the id of a Replay that keeps the jobs' old values."""


JOB_ACTIONS = {
    action.name: action
    for action in (
        JobAction("retry", "retried", "Retry now", retry_now, (State.PENDING,)),
        JobAction("cancel", "cancelled", "Cancel", cancel, LIVE),
        JobAction("replay", "replayed", "Replay", replay, REPLAYABLE, True),
    )
}


@dataclass(slots=True)
class Summary:
    """The result of an action, over all batches."""

    changed: int = 0
    stop_requested: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    more: bool = False
    last: int | None = None
    """The id of the last job that was read."""
    replay: Replay | None = None
    """The record by which a replay of many jobs can be undone."""
    entry: int | None = None
    """The id of the entry in the audit log for all jobs."""

    def text(self, action: JobAction) -> str:
        sentences = [f"{_jobs(self.changed)} {action.past}."]
        if self.stop_requested:
            sentences.append(f"{_jobs(self.stop_requested)} running: stop requested.")
        sentences += [f"{_jobs(count)} not changed: {why}." for why, count in self.refused.items()]
        if self.more:
            sentences.append(f"There are more jobs; one click changes at most {MAX_JOBS:,}.")
        return " ".join(sentences)


def apply(
    user: Any,
    action: JobAction,
    jobs: QuerySet[Job],
    limit: int = MAX_JOBS,
    *,
    what: str = "",
    hidden: Hidden | None = None,
) -> Summary:
    """Apply the action to at most `limit` of the jobs, newest first; each batch is a transaction.

    `what` describes many jobs, e.g. by the filter: then the audit log gets one entry for all jobs
    instead of one per job, and a replay can be undone. Jobs that `hidden` returns are left out.
    """
    summary = Summary()
    rows = jobs.order_by("-pk").only("pk", "handler", "event_id")
    while not summary.more:
        rest = rows if summary.last is None else rows.filter(pk__lt=summary.last)
        batch = list(rest[: min(BATCH, limit)])
        if not batch:
            break
        summary.last, limit = batch[-1].pk, limit - len(batch)
        left_out = hidden(batch) if hidden else set()
        handlers = {job.pk: job.handler for job in batch if job.pk not in left_out}
        if handlers:
            try:
                _apply_to_batch(user, action, handlers, summary, what)
            except Blocked as error:
                summary.refused[str(error)] += len(handlers)
        summary.more = limit <= 0 and rows.filter(pk__lt=summary.last).exists()
    return summary


def _apply_to_batch(
    user: Any, action: JobAction, batch: dict[int, str], summary: Summary, what: str
) -> None:
    ids, name = list(batch), user.get_username()
    with transaction.atomic(using=home()):
        replay, entry = summary.replay, summary.entry
        if what and action.can_be_undone:
            replay = replay or Replay.objects.create(user_id=user.pk, what=what)
            result = action.operation(ids, name, record=replay.pk)
        else:
            result = action.operation(ids, name)
        changed = summary.changed + len(result.changed)
        stopping = summary.stop_requested + len(result.stop_requested)
        if what:
            if changed or stopping:
                past = action.past
                if stopping:
                    past += f", and requested {stopping:,} to stop, of"
                entry = audit.record_many(user, Job, past, changed, what, entry)
            if replay is not None:
                Replay.objects.filter(pk=replay.pk).update(jobs=changed)
        else:
            _record_each(user, action, batch, result)
    summary.changed, summary.stop_requested = changed, stopping
    summary.replay, summary.entry = replay, entry
    summary.refused.update(result.refused.values())


def _record_each(
    user: Any, action: JobAction, batch: dict[int, str], result: OperationResult
) -> None:
    # A replay may include dependents that are not in the batch.
    changed = [(id, f"{batch.get(id, 'job')} {id}") for id in result.changed]
    audit.record(user, Job, action.past, changed)
    stopping = [(id, f"{batch[id]} {id}") for id in result.stop_requested]
    audit.record(user, Job, "requested to stop", stopping)


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number:,} jobs"
